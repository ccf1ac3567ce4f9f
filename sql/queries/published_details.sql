-- Cells, sessions and pairs of cells whose pages are published: the cells of series that changed in the nights $nights,
-- each with the cell of its last good night, and their sessions and those that failed, the newest first: 12 cells and
-- 1000 sessions at most.
WITH
changed AS (
    SELECT cell, night, any_value(baseline_cell) AS baseline_cell
    FROM series_verdict
    WHERE metric = 'latency'
        AND _is_one_of(night, $nights::DATE[])
        AND verdict NOT IN ('no change', 'insufficient data', 'new')
        AND cell IS NOT NULL
    GROUP BY cell, night
    ORDER BY night DESC, cell
    LIMIT 12
),
sessions AS (
    SELECT session_id, night
    FROM cell
    SEMI JOIN changed USING (cell)
    JOIN session_cell USING (cell_id)
    JOIN session USING (session_key)
    UNION
    SELECT session_id, night
    FROM _session
    WHERE _is_one_of(night, $nights::DATE[]) AND status != 'succeeded' AND reason_code IS DISTINCT FROM 'first_session'
    ORDER BY night DESC, session_id
    LIMIT 1000
)
SELECT 'cell' AS kind, cell AS name, night, NULL AS night_before FROM changed
UNION ALL
SELECT 'pair', baseline_cell || '..' || changed.cell, changed.night, min(before.night)
FROM changed
JOIN cell AS before ON before.cell = baseline_cell
GROUP BY ALL
UNION ALL
SELECT 'session', session_id, night, NULL FROM sessions
ORDER BY kind, name;
