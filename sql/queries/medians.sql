-- One row per cell of the sweep $sweep_id: the median of its session medians. Emulated and simulated devices have no times.
-- `differs` tells cells of one name apart.
SELECT
    device || coalesce(' (' || _without_times(emulated, transport) || ')', '') AS device,
    model,
    precision,
    variant,
    threads,
    count(*) AS sessions,
    sum(runs)::BIGINT AS runs,
    CASE WHEN _has_times(emulated) THEN round(median(median_ms), 4) END AS "median ms",
    CASE WHEN _has_times(emulated) THEN round(median(mad_ms), 4) END AS "MAD ms",
    differs
FROM session_latency
JOIN (SELECT cell, sweep_id, transport FROM cell) USING (cell, sweep_id)
LEFT JOIN _differs USING (cell, sweep_id)
WHERE sweep_id = $sweep_id
GROUP BY cell, device, transport, emulated, model, precision, variant, threads, differs
ORDER BY device, model, precision, variant, threads, differs
