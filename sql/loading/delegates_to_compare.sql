-- The times and starts of the sessions of each cell, beside those with XNNPACK, of the fastest of its precision and of
-- the fastest of its model, in the sweeps that state delegates and have no result yet.
WITH
named AS (
    FROM _delegate_cell
    WHERE has_times AND sweep_id NOT IN (SELECT sweep_id FROM delegate_result)
),
pair AS (
    SELECT DISTINCT sweep_id, cell_id, unnest([xnnpack_id, fastest_id, fastest_of_model_id]) AS reference_id
    FROM named
),
timed AS (
    SELECT
        cell_id,
        list(execute_ns / typical_runs / 1e6 ORDER BY session_key) AS times_ms,
        coalesce(list(epoch(started_at) ORDER BY session_key) FILTER (started_at IS NOT NULL), []) AS starts_s
    FROM session_time
    JOIN session_cell USING (session_key)
    JOIN session USING (session_key)
    WHERE cell_id IN (SELECT cell_id FROM named)
    GROUP BY cell_id
)
SELECT
    sweep_id,
    pair.cell_id,
    reference_id,
    timed.times_ms,
    timed.starts_s,
    reference.times_ms AS reference_ms,
    reference.starts_s AS reference_starts_s
FROM pair
JOIN timed ON timed.cell_id = pair.cell_id
JOIN timed AS reference ON reference.cell_id = reference_id
WHERE pair.cell_id <> reference_id
ORDER BY sweep_id, pair.cell_id, reference_id;
