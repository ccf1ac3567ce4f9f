-- Cells and sessions whose pages are published: those of series that changed in the nights $nights, and of sessions
-- that failed in them, the newest first: 12 cells and 1000 sessions at most.
WITH
changed AS (
    SELECT DISTINCT cell, night
    FROM series_verdict
    WHERE metric = 'latency'
        AND _is_one_of(night, $nights::DATE[])
        AND verdict NOT IN ('no change', 'insufficient data', 'new')
        AND cell IS NOT NULL
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
SELECT 'cell' AS kind, cell AS name, night FROM changed
UNION ALL
SELECT 'session', session_id, night FROM sessions
ORDER BY kind, name;
