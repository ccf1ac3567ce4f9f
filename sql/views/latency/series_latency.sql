CREATE OR REPLACE VIEW series_latency AS
SELECT
    series_id,
    series_night.night,
    series.model,
    series.precision,
    series.variant,
    series.threads,
    series.device_model,
    os_build,
    series.emulated,
    sessions,
    median_ns / 1e6 AS median_ms,
    mad_ns / 1e6 AS mad_ms,
    min_ns / 1e6 AS min_ms,
    max_ns / 1e6 AS max_ms,
    pte_sha256,
    executorch_version,
    runner_sha256,
    backend,
    series.seed,
    sweep_id,
    device,
    cell,
    serial,
    build,
    row_number() OVER (
        PARTITION BY series_id, device, series_night.night ORDER BY last_started_at DESC NULLS LAST, cell DESC
    ) = 1 AS is_newest,
    time_ns / 1e6 AS time_ms
FROM series_night
JOIN series USING (series_id)
JOIN cell USING (cell_id);

COMMENT ON VIEW series_latency IS 'What may be compared over nights: each cell of a series and night, with its time. `WHERE is_newest` leaves one cell per series, device and night: the one that verdicts are about.';
COMMENT ON COLUMN series_latency.series_id IS 'Hash of model, seed, backend, precision, threads, variant, device model, OS build and emulation. Versions are not part of it, so an upgrade shows as a step.';
COMMENT ON COLUMN series_latency.device_model IS 'Model of the device, or its name if the model is unknown: phones of one model share a series.';
COMMENT ON COLUMN series_latency.os_build IS 'Build of the operating system.';
COMMENT ON COLUMN series_latency.sessions IS 'Sessions of the cell that succeeded.';
COMMENT ON COLUMN series_latency.median_ms IS 'Median of the medians of their runs, in milliseconds.';
COMMENT ON COLUMN series_latency.mad_ms IS 'Median absolute deviation of these medians in milliseconds, not scaled by 1.4826.';
COMMENT ON COLUMN series_latency.min_ms IS 'Fastest of these medians in milliseconds.';
COMMENT ON COLUMN series_latency.max_ms IS 'Slowest of these medians in milliseconds.';
COMMENT ON COLUMN series_latency.backend IS 'Backends that the program of the series calls, such as xnnpack or coreml+xnnpack; portable for none; unknown for a .pte file whose delegates were not recorded.';
COMMENT ON COLUMN series_latency.is_newest IS 'Whether the cell is the one of its night that was measured last, of its series on its device.';
