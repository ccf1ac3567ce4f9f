-- One row per kind of contradiction between the tables of a warehouse: its kind, and how many rows it concerns.
WITH
finding AS (
    SELECT 'session without ledger' AS finding, count(*) AS row_count
    FROM session
    WHERE session_key NOT IN (SELECT session_key FROM load_ledger)
    UNION ALL
    SELECT 'ledger without session', count(*)
    FROM load_ledger
    WHERE session_key NOT IN (SELECT session_key FROM session)
    UNION ALL
    SELECT 'etdump without ledger', count(*)
    FROM session
    WHERE etdump_sha256 NOT IN (SELECT sha256 FROM load_ledger)
    UNION ALL
    SELECT 'number of runs', count(*)
    FROM (
        SELECT session_key, any_value(executions) AS executions, count(run_id) AS runs
        FROM session
        LEFT JOIN run USING (session_key)
        GROUP BY session_key, etdump_sha256
        HAVING runs != CASE WHEN etdump_sha256 IS NULL THEN 0 ELSE any_value(executions) END
    )
    UNION ALL
    SELECT 'run without session', count(*)
    FROM run
    WHERE session_key NOT IN (SELECT session_key FROM session)
    UNION ALL
    SELECT 'run twice', count(*) - count(DISTINCT run_id)
    FROM run
    UNION ALL
    SELECT 'event without run or node', count(*)
    FROM event
    LEFT JOIN run USING (run_id)
    LEFT JOIN node USING (node_id)
    WHERE run.run_id IS NULL OR node.node_id IS NULL
    UNION ALL
    SELECT 'run without events', count(*)
    FROM run
    ANTI JOIN event USING (run_id)
    WHERE session_key NOT IN (SELECT session_key FROM thinned_session)
    UNION ALL
    SELECT 'events of thinned', count(*)
    FROM event
    JOIN run USING (run_id)
    WHERE session_key IN (SELECT session_key FROM thinned_session)
    UNION ALL
    SELECT 'session without cell', count(*)
    FROM (
        SELECT session_key
        FROM session
        LEFT JOIN session_cell USING (session_key)
        LEFT JOIN cell USING (cell_id)
        GROUP BY session_key
        HAVING count(cell.cell_id) != 1
    )
    UNION ALL
    SELECT 'session without parts', count(*)
    FROM session
    WHERE sweep_id NOT IN (SELECT sweep_id FROM sweep)
        OR device_id NOT IN (SELECT device_id FROM device)
        OR model_id NOT IN (SELECT model_id FROM model)
        OR runner_id NOT IN (SELECT runner_id FROM runner)
    UNION ALL
    SELECT 'session without sources', count(*)
    FROM session
    WHERE source_map_id IS NOT NULL AND source_map_id NOT IN (SELECT source_map_id FROM source_map)
)
SELECT finding, row_count
FROM finding
WHERE row_count > 0
