-- Reads: verdict
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
    noise_floor / nullif(median(noise_floor) OVER earlier, 0) AS change,
    -- Number of nights that it was estimated from.
    baseline_nights,
    series_id,
    cell
FROM verdict
WHERE noise_floor IS NOT NULL
WINDOW earlier AS (
    PARTITION BY series_id, device ORDER BY night ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
