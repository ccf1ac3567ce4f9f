CREATE OR REPLACE VIEW night_over_night AS
SELECT
    night,
    device,
    model,
    precision,
    variant,
    threads,
    time_ms,
    lag(night) OVER series_nights AS night_before,
    lag(time_ms) OVER series_nights AS time_before_ms,
    time_ms / nullif(lag(time_ms) OVER series_nights, 0) AS ratio,
    verdict,
    sessions,
    series_id,
    cell,
    lag(cell) OVER series_nights AS cell_before
FROM verdict
WHERE time_ms IS NOT NULL
WINDOW series_nights AS (PARTITION BY series_id, device ORDER BY night);

COMMENT ON VIEW night_over_night IS 'Each night of a series on a device beside the measured night before it. One night more or less says little: `verdict` judges with all nights before.';
COMMENT ON COLUMN night_over_night.night_before IS 'The last earlier night with a session that counts; NULL for the first.';
COMMENT ON COLUMN night_over_night.time_before_ms IS 'Its time in milliseconds.';
COMMENT ON COLUMN night_over_night.ratio IS 'time_ms / time_before_ms: above 1 is slower.';
COMMENT ON COLUMN night_over_night.verdict IS 'The verdict on the night, see `verdict`.';
COMMENT ON COLUMN night_over_night.sessions IS 'Sessions behind time_ms.';
COMMENT ON COLUMN night_over_night.cell_before IS 'The cell of the night before.';
