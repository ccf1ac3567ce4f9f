-- Every series on each device with its newest verdict on its latency.
WITH
newest AS (
    SELECT *, count(*) OVER of_series AS nights, min(night) OVER of_series AS first_night
    FROM series_verdict
    WHERE metric = 'latency'
    WINDOW of_series AS (PARTITION BY series_id, device)
    QUALIFY row_number() OVER (PARTITION BY series_id, device ORDER BY night DESC) = 1
)
SELECT
    model,
    device,
    NULL::VARCHAR AS without_times,
    precision,
    threads,
    NULL::VARCHAR AS differs,
    coalesce(cell, series_id) AS cell,
    variant,
    series_id,
    night,
    value / 1e6 AS time_ms,
    verdict,
    ratio,
    noise_floor,
    since,
    nights,
    _verdict_place(verdict) AS place,
    first_night
FROM newest
JOIN series USING (series_id)
ORDER BY model, device, threads, precision <> 'fp32', precision, variant, night DESC, series_id;
