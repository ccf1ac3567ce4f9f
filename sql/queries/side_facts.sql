-- Facts of cells beside their times: size of the program, peak memory of their sessions, and accuracy.
SELECT
    cell,
    any_value(pte_bytes) AS pte_bytes,
    median(_session.model_peak_memory_bytes) AS peak_memory_bytes,
    any_value(accuracy) AS accuracy
FROM _session
JOIN model USING (model_id)
LEFT JOIN cell_accuracy USING (cell, sweep_id)
WHERE cell IN $cells AND status = 'succeeded'
GROUP BY cell
ORDER BY cell;
