CREATE OR REPLACE VIEW _operator_session AS
SELECT
    session_key,
    cell,
    kind,
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
FROM _session
JOIN session_node USING (session_key)
JOIN node USING (node_id)
LEFT JOIN operator_category USING (operator, kind)
WHERE status = 'succeeded' AND mode = 'timing';

COMMENT ON VIEW _operator_session IS 'Time of each operator in each session that may enter statistics. Private: may change with any version.';
COMMENT ON COLUMN _operator_session.session_key IS 'Number of the session inside this warehouse.';
COMMENT ON COLUMN _operator_session.cell IS 'Equal for sessions of the same sweep, device, model, precision, variant, mode, threads and runner source.';
COMMENT ON COLUMN _operator_session.kind IS 'delegated, portable or other; method, delegate_call and operator_call for the unattributed time inside Method::execute itself and inside the calls of delegates and of operators.';
COMMENT ON COLUMN _operator_session.operator IS 'Name of the operator without its number, layout, data types and kernel.';
COMMENT ON COLUMN _operator_session.layout IS 'Layout that a delegated operator''s name states, such as NHWC.';
COMMENT ON COLUMN _operator_session.data_type IS 'Data types that a delegated operator''s name states, such as `PQS8, QC8W`.';
COMMENT ON COLUMN _operator_session.microkernel IS 'Kind of kernel that a delegated operator''s name states: GEMM, IGEMM, DWConv, ...';
COMMENT ON COLUMN _operator_session.category IS 'Convolution, GEMM, Data Movement, Elementwise or Other, by sql/seeds/operator_category.csv; Unattributed is the time of Method::execute that no operator accounts for.';
COMMENT ON COLUMN _operator_session.runs IS 'Measured runs of the session.';
COMMENT ON COLUMN _operator_session.calls IS 'Times the operator ran in them.';
COMMENT ON COLUMN _operator_session.self_ns IS 'Nanoseconds that it took in them, its children left out.';
