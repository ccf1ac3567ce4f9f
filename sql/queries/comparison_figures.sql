-- The time of each session of both sides of a comparison, by its cells: of how many calls, and from when.
SELECT
    arm,
    list(execute_ns / typical_runs ORDER BY session_id) AS figures_ns,
    count(DISTINCT comparison) AS calls,
    min(started_at) AS since
FROM _session
JOIN session_time USING (session_key)
WHERE cell IN $cells
GROUP BY arm
ORDER BY arm;
