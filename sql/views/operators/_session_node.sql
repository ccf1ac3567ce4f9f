-- Reads: session_node, session_time, session, _named_node, node_source
-- Time of each node of the operator tree in the time of each session, by the name that verdicts on operators use.
CREATE OR REPLACE VIEW _session_node AS
SELECT
    session_key,
    -- As in _named_node.
    operator,
    -- As in _named_node.
    category,
    -- Path of its module, or Unattributed, Inserted or Unknown; NULL where the export does not state modules.
    CASE WHEN source_map_id IS NOT NULL THEN _module_name(kind, certainty, module_path) END AS module_path,
    -- Calls in one run: the mean of the same runs as time_ms.
    calls / typical_runs AS calls_per_run,
    -- Nanoseconds in one run, without children. Those of a session add up to its time.
    self_ns / typical_runs AS time_ns,
    -- Nanoseconds that the clock of a delegate may hide in one run.
    CASE WHEN kind = 'delegated' THEN calls / typical_runs * 1e6 * _delegate_clock_ms() ELSE 0 END AS hidden_ns
FROM session_node
JOIN session_time USING (session_key)
JOIN (SELECT session_key, source_map_id FROM session) USING (session_key)
JOIN _named_node USING (node_id)
LEFT JOIN node_source USING (source_map_id, node_id);
