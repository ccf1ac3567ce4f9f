-- The median of each session of both sides of a comparison, of the cells that its result is about.
SELECT arm, list(median_ns ORDER BY session_id) AS figures_ns
FROM (
    SELECT session_id, arm, cell, median(execute_ns) AS median_ns
    FROM _session
    JOIN run USING (session_key)
    WHERE comparison = $comparison AND mode = 'timing' AND status = 'succeeded' AND NOT is_warmup
    GROUP BY session_id, arm, cell
)
JOIN comparison_result ON cell IN (cell_a, cell_b)
GROUP BY arm
ORDER BY arm;
