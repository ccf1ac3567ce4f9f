CREATE OR REPLACE VIEW _session_node AS
SELECT
    session_key,
    CASE
        WHEN _is_operator(kind) THEN _operator_name(operator, layout, data_type, microkernel) ELSE 'Unattributed'
    END AS operator,
    CASE WHEN _is_operator(kind) THEN coalesce(category, 'Other') ELSE 'Unattributed' END AS category,
    self_ns,
    CASE WHEN kind = 'delegated' THEN calls * 1e6 * _delegate_clock_ms() ELSE 0 END AS hidden_ns
FROM session_node
JOIN node USING (node_id)
LEFT JOIN operator_category USING (operator, kind);

COMMENT ON VIEW _session_node IS 'Time of each node of the operator tree in the measured runs of each session, by the name that verdicts on operators use. Private: may change with any version.';
COMMENT ON COLUMN _session_node.operator IS 'Name with layout, data types and kernel, without its number; Unattributed for the time of no operator.';
COMMENT ON COLUMN _session_node.self_ns IS 'Nanoseconds over all measured runs, without children.';
COMMENT ON COLUMN _session_node.hidden_ns IS 'Nanoseconds that the clock of a delegate may hide, over all measured runs.';
