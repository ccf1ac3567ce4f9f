-- Reads: comparison_result, cell
-- How noisy each device was each night: the same model interleaved with itself (`noise_sessions` of a sweep). Where the
-- noise doubles, check the device, not the model.
CREATE OR REPLACE VIEW device_noise AS
WITH
measured AS (
    SELECT
        cell.*,
        sessions_a + sessions_b AS sessions,
        answer,
        sqrt(high / low) - 1 AS noise
    FROM comparison_result
    JOIN cell ON cell = cell_b
    WHERE purpose = 'noise' AND low IS NOT NULL
)
SELECT
    night,
    device,
    model,
    precision,
    variant,
    threads,
    -- Sessions of both sides together.
    sessions,
    -- Half the width of the 95 % interval of the ratio of both sides, as a fraction: smaller differences are not seen
    -- with as many sessions.
    noise,
    -- The noise over the median of earlier nights; NULL for the first.
    noise / nullif(median(noise) OVER earlier, 0) AS change,
    -- Number of earlier nights.
    count(*) OVER earlier AS earlier_nights,
    -- Whether the noise is more than twice that of at least 5 earlier nights.
    coalesce(noise > 2 * median(noise) OVER earlier AND count(*) OVER earlier >= 5, FALSE) AS is_doubled,
    -- The answer of the comparison; `different` about once in 20 nights, by chance.
    answer,
    sweep_id,
    comparison
FROM measured
WINDOW earlier AS (
    PARTITION BY device, model, precision, variant, threads
    ORDER BY night, comparison
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);
