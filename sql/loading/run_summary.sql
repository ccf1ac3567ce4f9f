-- Where the time of each new run went: delegated, portable, other or unattributed. `new_run` and `new_event` hold the rows being loaded.
INSERT INTO run_summary BY NAME
WITH
leaf AS (
    SELECT
        run_id,
        coalesce(sum(self_ns) FILTER (kind = 'delegated'), 0) AS delegated_ns,
        coalesce(sum(self_ns) FILTER (kind = 'portable'), 0) AS portable_ns,
        coalesce(sum(self_ns) FILTER (kind = 'other'), 0) AS other_ns
    FROM new_event
    JOIN node USING (node_id)
    GROUP BY run_id
)
SELECT
    run_id,
    session_key,
    delegated_ns,
    portable_ns,
    other_ns,
    execute_ns - delegated_ns - portable_ns - other_ns AS unattributed_ns
FROM new_run
JOIN leaf USING (run_id);
