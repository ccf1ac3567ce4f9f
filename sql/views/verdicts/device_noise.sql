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
    sessions,
    noise,
    noise / nullif(median(noise) OVER earlier, 0) AS change,
    count(*) OVER earlier AS earlier_nights,
    coalesce(noise > 2 * median(noise) OVER earlier AND count(*) OVER earlier >= 5, FALSE) AS is_doubled,
    answer,
    sweep_id,
    comparison
FROM measured
WINDOW earlier AS (
    PARTITION BY device, model, precision, variant, threads
    ORDER BY night, comparison
    ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
);

COMMENT ON VIEW device_noise IS 'How noisy each device was each night: the same model measured alternately with itself (`noise_sessions` of a sweep). Where the noise doubles, the device needs a look, not the model.';
COMMENT ON COLUMN device_noise.sessions IS 'Sessions of both sides together.';
COMMENT ON COLUMN device_noise.noise IS 'Half the width of the 95 % interval of the ratio of both sides, as a fraction: smaller differences are not seen with as many sessions.';
COMMENT ON COLUMN device_noise.change IS 'The noise over the median of earlier nights; NULL for the first.';
COMMENT ON COLUMN device_noise.earlier_nights IS 'Number of earlier nights.';
COMMENT ON COLUMN device_noise.is_doubled IS 'Whether the noise is more than twice that of at least 5 earlier nights.';
COMMENT ON COLUMN device_noise.answer IS 'The answer of the comparison; `different` about once in 20 nights, by chance.';
