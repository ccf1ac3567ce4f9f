-- Latency by cell (sessions with equal settings): its time, and figures of its sessions, since runs of one process
-- are not independent. An emulated device has counts and no times: its times mean nothing.
SELECT
    named.* EXCLUDE (sweep_id, place),
    any_value(_cell.sessions) AS sessions,
    any_value(_cell.runs) AS runs,
    _interquartile_mean(
        list(coalesce(model_peak_memory_bytes, peak_memory_bytes)) FILTER (
            coalesce(model_peak_memory_bytes, peak_memory_bytes) IS NOT NULL
        )
    )::BIGINT AS peak_memory_bytes,
    any_value(cell_ms) FILTER (without_times IS NULL) AS time_ms,
    CASE WHEN count(*) > 1 THEN mad(session_latency.time_ms) FILTER (without_times IS NULL) END AS between_ms,
    median(mad_ms) FILTER (without_times IS NULL) AS mad_ms,
    median(p90_ms) FILTER (without_times IS NULL) AS p90_ms,
    median(load_ms) FILTER (without_times IS NULL) AS load_ms,
    max(tracing_cost) FILTER (without_times IS NULL) AS tracing_cost,
    count(tracing_cost) FILTER (without_times IS NULL) AS traced_sessions,
    list(session_latency.time_ms ORDER BY session_id) FILTER (
        without_times IS NULL AND session_latency.time_ms IS NOT NULL
    ) AS times_ms,
    count(*) FILTER (without_times IS NULL AND has_drift) AS drifting_sessions,
    count(*) FILTER (without_times IS NULL AND is_bimodal) AS bimodal_sessions
FROM session_latency
JOIN _cell USING (cell, sweep_id)
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND session_latency.runs > 0
GROUP BY ALL
ORDER BY any_value(place);
