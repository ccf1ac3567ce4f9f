-- The median of each session of both sides of a comparison, of the cells that its result is about.
SELECT cell.arm, list(median_ns ORDER BY session_id) AS figures_ns
FROM (
    SELECT session_key, session_id, median(execute_ns) AS median_ns
    FROM session
    JOIN run USING (session_key)
    WHERE session.comparison = $comparison AND mode = 'timing' AND status = 'succeeded' AND NOT is_warmup
    GROUP BY session_key, session_id
)
JOIN session_cell USING (session_key)
JOIN cell USING (cell_id)
JOIN comparison_result ON cell IN (cell_a, cell_b)
GROUP BY cell.arm
ORDER BY cell.arm;
