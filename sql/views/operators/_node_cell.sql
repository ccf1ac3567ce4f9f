CREATE OR REPLACE VIEW _node_cell AS
WITH
member AS (
    SELECT
        cell_id,
        session_key,
        source_map_id,
        executions - warmup_executions AS runs,
        count(*) OVER (PARTITION BY cell_id) AS sessions
    FROM session_cell
    JOIN session USING (session_key)
    WHERE status = 'succeeded'
        AND mode = 'timing'
        AND executions > warmup_executions
        AND source_map_id IS NOT NULL
)
-- As in cell_operator: a session's time is the mean of its runs, a cell's the median of its sessions.
SELECT
    cell_id,
    node_id,
    max(source_map_id) AS source_map_id,
    list_median(list_resize(list(calls / runs), any_value(sessions), 0)) AS calls_per_run,
    list_median(list_resize(list(self_ns / runs), any_value(sessions), 0)) / 1e6 AS time_ms
FROM member
JOIN session_node USING (session_key)
GROUP BY cell_id, node_id;

COMMENT ON VIEW _node_cell IS 'Time of each node of the operator tree in each cell whose export states where operators come from. Private: may change with any version.';
COMMENT ON COLUMN _node_cell.node_id IS 'Number of the node of the operator tree inside this warehouse.';
