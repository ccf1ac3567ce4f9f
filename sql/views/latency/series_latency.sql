-- Reads: series_night, series, cell
-- What may be compared over nights: each cell of a series and night, with its time. `WHERE is_newest` leaves one cell
-- per series, device and night: the one that verdicts are about.
CREATE OR REPLACE VIEW series_latency AS
SELECT
    -- Hash of model, seed, backend, precision, threads, variant, device model, OS build and emulation. Versions are not
    -- part of it, so an upgrade shows as a step.
    series_id,
    series_night.night,
    device,
    series.emulated,
    series.model,
    series.precision,
    series.variant,
    series.threads,
    -- Milliseconds in one run: a part of the time of the cell, a mean of the same runs of the same sessions (see
    -- session_latency).
    time_ns / 1e6 AS time_ms,
    -- Sessions of the cell that succeeded.
    sessions,
    -- Whether the cell is the one of its night that was measured last, of its series on its device.
    NOT EXISTS (
        SELECT 1
        FROM series_night AS later
        JOIN cell AS later_cell USING (cell_id)
        WHERE later.series_id = series_night.series_id
            AND later.night = series_night.night
            AND later_cell.device = cell.device
            AND row(coalesce(later.last_started_at, '-infinity'::TIMESTAMP), later_cell.cell)
            > row(coalesce(series_night.last_started_at, '-infinity'::TIMESTAMP), cell.cell)
    ) AS is_newest,
    -- Median of the medians of their runs, in milliseconds.
    median_ns / 1e6 AS median_ms,
    -- Median absolute deviation of these medians in milliseconds, not scaled by 1.4826.
    mad_ns / 1e6 AS mad_ms,
    -- Fastest of these medians in milliseconds.
    min_ns / 1e6 AS min_ms,
    -- Slowest of these medians in milliseconds.
    max_ns / 1e6 AS max_ms,
    backend,
    -- Model of the device, or its name if the model is unknown: phones of one model share a series.
    series.device_model,
    os_build,
    executorch_version,
    series.seed,
    sweep_id,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM series_night
JOIN series USING (series_id)
JOIN cell USING (cell_id);
