-- Latency by cell (sessions that are measured alike), from session medians: runs of one process are not independent.
-- An emulated device has counts and no times: its times mean nothing.
SELECT
    named.* EXCLUDE (sweep_id, place),
    count(*) AS sessions,
    sum(runs) AS runs,
    max(coalesce(model_peak_resident_bytes, peak_resident_bytes)) AS peak_resident_bytes,
    median(median_ms) FILTER (without_times IS NULL) AS median_ms,
    CASE WHEN count(*) > 1 THEN mad(median_ms) FILTER (without_times IS NULL) END AS between_ms,
    median(mad_ms) FILTER (without_times IS NULL) AS mad_ms,
    median(p90_ms) FILTER (without_times IS NULL) AS p90_ms,
    median(load_ms) FILTER (without_times IS NULL) AS load_ms,
    max(tracing_cost) FILTER (without_times IS NULL) AS tracing_cost,
    count(*) FILTER (without_times IS NULL AND has_drift) AS drifting_sessions,
    count(*) FILTER (without_times IS NULL AND is_bimodal) AS bimodal_sessions
FROM session_latency
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND runs > 0
GROUP BY ALL
ORDER BY any_value(place);
