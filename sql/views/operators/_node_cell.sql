-- Reads: session_cell, session_time, session, session_node
-- Time of each node of the operator tree in each cell whose export states where operators come from.
CREATE OR REPLACE VIEW _node_cell AS
WITH
member AS (
    SELECT cell_id, session_key, sum(typical_runs) OVER (PARTITION BY cell_id) AS runs
    FROM session_cell
    JOIN session_time USING (session_key)
    WHERE is_typical
),
mapped AS (
    SELECT cell_id, max(source_map_id) AS source_map_id
    FROM session_cell
    JOIN session USING (session_key)
    GROUP BY cell_id
)
-- As in cell_operator.
SELECT
    cell_id,
    -- Number of the node of the operator tree inside this warehouse.
    node_id,
    source_map_id,
    -- Calls in one run: the mean of the same runs as time_ms.
    sum(calls) / any_value(runs) AS calls_per_run,
    -- Milliseconds in one run: a part of the time of the cell, a mean of the same runs of the same sessions (see
    -- session_latency).
    sum(self_ns) / any_value(runs) / 1e6 AS time_ms
FROM member
JOIN session_node USING (session_key)
JOIN mapped USING (cell_id)
WHERE source_map_id IS NOT NULL
GROUP BY cell_id, node_id, source_map_id;
