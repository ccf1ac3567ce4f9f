-- Reads: series_verdict, series
-- By how much each series on each device moves from night to night without a change: smaller changes of one night mean
-- nothing.
CREATE OR REPLACE VIEW noise_floor AS
SELECT
    night,
    device,
    model,
    precision,
    variant,
    threads,
    -- As a fraction of the time.
    noise_floor,
    -- The floor over the median of the floors of earlier nights: about 2 or more points to the device, not to the
    -- model. NULL for the first.
    noise_floor_change AS change,
    -- Number of nights that it was estimated from.
    baseline_nights,
    series_id,
    cell
FROM series_verdict
JOIN series USING (series_id)
WHERE metric = 'latency' AND noise_floor IS NOT NULL;
