CREATE OR REPLACE VIEW _session_node AS
SELECT
    session_key,
    CASE
        WHEN _is_operator(kind) THEN _operator_name(operator, layout, data_type, microkernel) ELSE 'Unattributed'
    END AS operator,
    CASE WHEN _is_operator(kind) THEN coalesce(category, 'Other') ELSE 'Unattributed' END AS category,
    CASE WHEN source_map_id IS NOT NULL THEN _module_name(kind, certainty, module_path) END AS module_path,
    calls / typical_runs AS calls_per_run,
    self_ns / typical_runs AS time_ns,
    CASE WHEN kind = 'delegated' THEN calls / typical_runs * 1e6 * _delegate_clock_ms() ELSE 0 END AS hidden_ns
FROM session_node
JOIN session_time USING (session_key)
JOIN (SELECT session_key, source_map_id FROM session) USING (session_key)
JOIN node USING (node_id)
LEFT JOIN node_source USING (source_map_id, node_id)
LEFT JOIN operator_category USING (operator, kind);

COMMENT ON VIEW _session_node IS 'Time of each node of the operator tree in the time of each session, by the name that verdicts on operators use. Private: may change with any version.';
COMMENT ON COLUMN _session_node.operator IS 'Name with layout, data types and kernel, without its number; Unattributed for the time of no operator.';
COMMENT ON COLUMN _session_node.module_path IS 'Path of its module, or Unattributed, Inserted or Unknown; NULL where the export does not state modules.';
COMMENT ON COLUMN _session_node.time_ns IS 'Nanoseconds in one run, without children. Those of a session add up to its time.';
COMMENT ON COLUMN _session_node.hidden_ns IS 'Nanoseconds that the clock of a delegate may hide in one run.';
