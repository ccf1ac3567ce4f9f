CREATE OR REPLACE VIEW series_overview AS
SELECT
    device,
    model,
    precision,
    variant,
    threads,
    count(*) AS nights,
    min(night) AS first_night,
    max(night) AS last_night,
    arg_max(time_ms, night) FILTER (time_ms IS NOT NULL) AS time_ms,
    arg_max(noise_floor, night) FILTER (noise_floor IS NOT NULL) AS noise_floor,
    arg_max(verdict, night) AS verdict,
    arg_max_null(since, night) AS since,
    series_id
FROM verdict
GROUP BY device, model, precision, variant, threads, series_id;

COMMENT ON VIEW series_overview IS 'What is compared over nights: each series on each device with its newest verdict. A phone of the same model has a history apart.';
COMMENT ON COLUMN series_overview.nights IS 'Nights with a planned timing session, whatever came of it.';
COMMENT ON COLUMN series_overview.first_night IS 'The first of them.';
COMMENT ON COLUMN series_overview.last_night IS 'The last of them.';
COMMENT ON COLUMN series_overview.time_ms IS 'Time of the newest night that has one, in milliseconds.';
COMMENT ON COLUMN series_overview.noise_floor IS 'The newest noise floor: by how much the series moves from night to night without a change, as a fraction of its time.';
COMMENT ON COLUMN series_overview.verdict IS 'The verdict on the newest night, see `verdict`.';
COMMENT ON COLUMN series_overview.since IS 'First night of the present step; NULL without one.';
