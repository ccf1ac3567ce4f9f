-- Facts of cells beside their times: size of the program, peak memory of their sessions, accuracy, time to load the
-- program, and the commit of their sweep.
SELECT
    cell,
    any_value(pte_bytes) AS pte_bytes,
    -- as the metric peak memory of a verdict
    _interquartile_mean(
        list(coalesce(_session.model_peak_memory_bytes, _session.peak_memory_bytes)) FILTER (
            coalesce(_session.model_peak_memory_bytes, _session.peak_memory_bytes) IS NOT NULL
        )
    ) AS peak_memory_bytes,
    any_value(accuracy) AS accuracy,
    median(load_ns) FILTER (_has_times(_session.emulated)) / 1e6 AS load_ms,
    max(source_commit) AS source_commit,
    bool_or(source_is_dirty) AS source_is_dirty
FROM _session
JOIN model USING (model_id)
LEFT JOIN cell_accuracy USING (cell, sweep_id)
WHERE cell IN $cells AND status = 'succeeded'
GROUP BY cell
ORDER BY cell;
