-- Reads: verdict
-- Each night of a series on a device beside the measured night before it. A single night is weak evidence: `verdict`
-- judges with all nights before.
CREATE OR REPLACE VIEW night_over_night AS
SELECT
    night,
    device,
    model,
    precision,
    variant,
    threads,
    -- Milliseconds in one run: a part of the time of the cell, a mean of the same runs of the same sessions (see
    -- session_latency).
    time_ms,
    -- The last earlier night with a session that counts; NULL for the first.
    lag(night) OVER series_nights AS night_before,
    -- Its time in milliseconds.
    lag(time_ms) OVER series_nights AS time_before_ms,
    -- time_ms / time_before_ms: above 1 is slower.
    time_ms / nullif(lag(time_ms) OVER series_nights, 0) AS ratio,
    -- The verdict on the night, see `verdict`.
    verdict,
    -- Sessions behind time_ms.
    sessions,
    series_id,
    cell,
    -- The cell of the night before.
    lag(cell) OVER series_nights AS cell_before
FROM verdict
WHERE time_ms IS NOT NULL
WINDOW series_nights AS (PARTITION BY series_id, device ORDER BY night);
