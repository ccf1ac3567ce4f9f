-- Every series on each device with its newest verdict on its latency; where a comparison decided, the time is that of
-- its side B, as the change is; `night_ms` is that of the night itself.
WITH
newest AS (
    FROM _compared_verdict
    WHERE metric = 'latency'
    QUALIFY row_number() OVER (PARTITION BY series_id, device ORDER BY night DESC) = 1
),
measured AS (
    SELECT
        series_id,
        device,
        count(*) AS nights,
        min(night) AS first_night,
        list(DISTINCT date_trunc('week', night)::DATE) AS weeks
    FROM series_verdict
    WHERE metric = 'latency'
    GROUP BY series_id, device
)
SELECT
    * REPLACE (coalesce(cell, series_id) AS cell),
    value / 1e6 AS time_ms,
    night_value / 1e6 AS night_ms,
    baseline_value / 1e6 AS before_ms,
    _verdict_place(verdict) AS rank
FROM newest
JOIN measured USING (series_id, device)
JOIN series USING (series_id)
ORDER BY model, device, threads, precision <> 'fp32', precision, variant, night DESC, series_id;
