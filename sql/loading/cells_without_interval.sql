-- The times of the sessions of each cell that has no interval yet.
SELECT cell_id, list(execute_ns / typical_runs / 1e6 ORDER BY session_key) AS times_ms
FROM session_time
JOIN session_cell USING (session_key)
WHERE cell_id NOT IN (SELECT cell_id FROM cell_interval)
GROUP BY cell_id;
