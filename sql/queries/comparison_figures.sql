-- The median of each session of both sides of a comparison; none of emulated devices.
SELECT cell.arm, cell, list(median_ns ORDER BY session_id) AS figures_ns
FROM (
    SELECT session_key, session_id, median(execute_ns) AS median_ns
    FROM session
    JOIN run USING (session_key)
    WHERE session.comparison = $comparison AND mode = 'timing' AND status = 'succeeded' AND NOT is_warmup
    GROUP BY session_key, session_id
)
JOIN session_cell USING (session_key)
JOIN cell USING (cell_id)
WHERE _has_times(emulated)
GROUP BY cell.arm, cell
ORDER BY cell.arm, count(*) DESC, cell;
