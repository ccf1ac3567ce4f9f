-- Reads: series_verdict, series
-- What is compared over nights: each series on each device with its newest verdict. A phone of the same model has a
-- history apart.
CREATE OR REPLACE VIEW series_overview AS
SELECT
    device,
    model,
    precision,
    variant,
    threads,
    -- Nights with a planned timing session, whatever came of it.
    count(*) AS nights,
    -- The first of them.
    min(night) AS first_night,
    -- The last of them.
    max(night) AS last_night,
    -- Time of the newest night that has one, in milliseconds.
    arg_max(value / 1e6, night) FILTER (value IS NOT NULL) AS time_ms,
    -- The newest noise floor: by how much the series moves from night to night without a change, as a fraction of its
    -- time.
    arg_max(noise_floor, night) FILTER (noise_floor IS NOT NULL) AS noise_floor,
    -- The verdict on the newest night, see `verdict`.
    arg_max(verdict, night) AS verdict,
    -- First night of the present step; NULL without one.
    arg_max_null(since, night) AS since,
    series_id
FROM series_verdict
JOIN series USING (series_id)
WHERE metric = 'latency'
GROUP BY device, model, precision, variant, threads, series_id;
