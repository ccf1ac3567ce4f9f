-- One line per cell of the sweep named by the parameter: the median of its sessions' medians.
-- Times of emulated devices mean nothing and are left empty.
SELECT
    device || CASE WHEN emulated THEN ' (emulated)' ELSE '' END AS device,
    model,
    precision,
    variant,
    threads,
    count(*) AS sessions,
    sum(runs)::BIGINT AS runs,
    CASE WHEN NOT emulated THEN round(median(median_ms), 4) END AS "median ms",
    CASE WHEN NOT emulated THEN round(median(mad_ms), 4) END AS "MAD ms"
FROM session_latency
WHERE sweep_id = $sweep_id
GROUP BY device, emulated, model, precision, variant, threads
ORDER BY device, model, precision, variant, threads
