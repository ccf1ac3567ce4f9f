CREATE OR REPLACE VIEW _operator_session AS
SELECT
    session_key,
    cell,
    kind,
    name,
    operator,
    layout,
    data_type,
    microkernel,
    CASE
        WHEN kind IN ('method', 'delegate_call', 'operator_call') THEN 'Unattributed'
        ELSE coalesce(category, 'Other')
    END AS category,
    executions - warmup_executions AS runs,
    calls,
    self_ns
FROM _timing_session
JOIN session_node USING (session_key)
JOIN node USING (node_id)
LEFT JOIN operator_category USING (operator, kind);

COMMENT ON VIEW _operator_session IS 'Time of each operator in each session that enters statistics. Private: may change with any version.';
COMMENT ON COLUMN _operator_session.runs IS 'Measured runs of the session.';
COMMENT ON COLUMN _operator_session.calls IS 'Calls of the operator in these runs.';
COMMENT ON COLUMN _operator_session.self_ns IS 'Nanoseconds that it took in these runs, without its children.';
