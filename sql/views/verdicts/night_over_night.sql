-- Reads: series_verdict, series
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
    value / 1e6 AS time_ms,
    -- The last earlier night with a session that counts; NULL for the first.
    night_before,
    -- Its time in milliseconds.
    value_before / 1e6 AS time_before_ms,
    -- time_ms / time_before_ms: above 1 is slower.
    time_ms / nullif(time_before_ms, 0) AS ratio,
    -- The verdict on the night, see `verdict`.
    verdict,
    -- Sessions behind time_ms.
    sessions,
    series_id,
    cell,
    -- The cell of the night before.
    cell_before
FROM series_verdict
JOIN series USING (series_id)
WHERE metric = 'latency' AND value IS NOT NULL;
