-- Latency by cell (sessions that are measured alike), from session medians: runs of one process are not independent.
-- An emulated device has counts and no times: its times mean nothing.
WITH
cell AS (
    SELECT
        model,
        device,
        emulated IS TRUE AS emulated,
        precision,
        variant,
        threads,
        cell,
        differs,
        count(*) AS sessions,
        sum(runs) AS runs,
        median(median_ms) AS median_ms,
        mad(median_ms) AS between_ms,
        median(mad_ms) AS mad_ms,
        median(p90_ms) AS p90_ms,
        median(load_ms) AS load_ms,
        max(coalesce(model_peak_resident_bytes, peak_resident_bytes)) AS peak_resident_bytes,
        max(tracing_cost) AS tracing_cost,
        count(*) FILTER (_has_times(emulated) AND has_drift) AS drifting_sessions,
        count(*) FILTER (_has_times(emulated) AND is_bimodal) AS bimodal_sessions
    FROM session_latency
    LEFT JOIN _differs USING (cell, sweep_id)
    WHERE sweep_id = $sweep_id AND runs > 0
    GROUP BY ALL
)
SELECT
    * EXCLUDE (median_ms, between_ms, mad_ms, p90_ms, load_ms, tracing_cost),
    CASE WHEN _has_times(emulated) THEN median_ms END AS median_ms,
    CASE WHEN _has_times(emulated) AND sessions > 1 THEN between_ms END AS between_ms,
    CASE WHEN _has_times(emulated) THEN mad_ms END AS mad_ms,
    CASE WHEN _has_times(emulated) THEN p90_ms END AS p90_ms,
    CASE WHEN _has_times(emulated) THEN load_ms END AS load_ms,
    CASE WHEN _has_times(emulated) THEN tracing_cost END AS tracing_cost
FROM cell
ORDER BY model, emulated, device, threads, precision <> 'fp32', precision, variant, differs, cell;
