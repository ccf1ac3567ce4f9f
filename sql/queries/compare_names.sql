-- What an arm of a comparison may name, one row per name and sweep with a timing session that succeeded. Cells and
-- sessions are listed only if their ids begin with $a or $b. A sweep that was measured later is as old as its night.
WITH
latest AS (
    SELECT sweep_id, max(CASE WHEN measured_later THEN night::TIMESTAMP ELSE started_at END) AS last_started_at
    FROM session
    JOIN sweep USING (sweep_id)
    GROUP BY sweep_id
),
named AS (
    SELECT
        sweep_id,
        unnest([
            { 'kind': 'night', 'value': night::VARCHAR },
            { 'kind': 'sweep', 'value': sweep_id },
            { 'kind': 'variant', 'value': variant },
            { 'kind': 'device', 'value': device },
            { 'kind': 'model', 'value': model },
            { 'kind': 'precision', 'value': precision },
            { 'kind': 'threads', 'value': threads::VARCHAR },
            { 'kind': 'executorch', 'value': executorch_version },
            { 'kind': 'runner', 'value': runner_sha256 },
            { 'kind': 'runtime', 'value': _runtime(model) }
        ], recursive := TRUE)
    FROM _cell
    UNION ALL
    SELECT sweep_id, 'delegate', backend
    FROM series_night
    JOIN series USING (series_id)
    JOIN _cell USING (cell_id)
    UNION ALL
    SELECT sweep_id, 'cell', cell
    FROM _cell
    WHERE starts_with(cell, $a) OR starts_with(cell, $b)
    UNION ALL
    SELECT sweep_id, 'session', session_id
    FROM _timing_session
    WHERE executions > warmup_executions AND (starts_with(session_id, $a) OR starts_with(session_id, $b))
)
SELECT DISTINCT kind, value, sweep_id, last_started_at
FROM named
JOIN latest USING (sweep_id)
WHERE value IS NOT NULL
ORDER BY last_started_at DESC NULLS LAST, sweep_id DESC, kind, value;
