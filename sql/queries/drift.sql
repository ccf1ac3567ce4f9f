-- For each series and device that the sweep measured: the figures of its nights up to the sweep's, without those that
-- were not compared (excluded, invalid, too few sessions) and those before the newest reset of its baseline.
WITH
measured AS (
    SELECT DISTINCT series_id, device, night AS last_night
    FROM _session
    WHERE sweep_id = $sweep_id AND mode = 'timing'
),
judged AS (
    SELECT
        series_verdict.* EXCLUDE (cell),
        last_night,
        -- A baseline begins with the only night that the night after it was compared with.
        coalesce(max(baseline_from) FILTER (baseline_nights = 1) OVER of_series, min(night) OVER of_series)
            AS first_night
    FROM series_verdict
    JOIN measured USING (series_id, device)
    WHERE metric = 'latency' AND night <= last_night AND value IS NOT NULL
    WINDOW of_series AS (PARTITION BY series_id, device)
)
SELECT
    model,
    device,
    precision,
    threads,
    series_id AS cell,
    variant,
    list(night ORDER BY night) AS nights,
    list(value ORDER BY night) AS times_ns
FROM judged
JOIN series USING (series_id)
WHERE night >= first_night AND (ratio IS NOT NULL OR night = first_night)
GROUP BY model, device, precision, threads, series_id, variant
HAVING max(night) = any_value(last_night)
ORDER BY model, device, threads, precision <> 'fp32', precision, variant;
