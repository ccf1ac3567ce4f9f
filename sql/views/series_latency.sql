CREATE OR REPLACE VIEW series_latency AS
SELECT
    series_id,
    night,
    model,
    precision,
    variant,
    threads,
    device_model,
    os_build,
    emulated,
    sessions,
    median_ns / 1e6 AS median_ms,
    mad_ns / 1e6 AS mad_ms,
    min_ns / 1e6 AS min_ms,
    max_ns / 1e6 AS max_ms,
    pte_sha256,
    executorch_version,
    runner_sha256,
    backend,
    seed
FROM series_night
JOIN series USING (series_id);

COMMENT ON VIEW series_latency IS 'What may be compared over nights, one row per series and night: the median of its sessions'' medians.';
COMMENT ON COLUMN series_latency.series_id IS 'Of model, seed, backend, precision, threads, variant, device model, OS build and emulation. Versions stay out, so that an upgrade shows as a step.';
COMMENT ON COLUMN series_latency.night IS 'Date of the sweep.';
COMMENT ON COLUMN series_latency.model IS 'Name of the model.';
COMMENT ON COLUMN series_latency.precision IS 'fp32, fp16, int8_static or int8_dynamic.';
COMMENT ON COLUMN series_latency.variant IS 'sme2_on or sme2_off.';
COMMENT ON COLUMN series_latency.threads IS 'Threads asked for.';
COMMENT ON COLUMN series_latency.device_model IS 'Model of the device, its name where the model is not known: phones of one model share a series.';
COMMENT ON COLUMN series_latency.os_build IS 'Build of its system.';
COMMENT ON COLUMN series_latency.emulated IS 'Whether the devices are emulated, so that their times mean nothing.';
COMMENT ON COLUMN series_latency.sessions IS 'Sessions of the night that succeeded.';
COMMENT ON COLUMN series_latency.median_ms IS 'Median of their medians, in milliseconds.';
COMMENT ON COLUMN series_latency.mad_ms IS 'Median distance of their medians from it, not scaled by 1.4826.';
COMMENT ON COLUMN series_latency.min_ms IS 'Fastest median.';
COMMENT ON COLUMN series_latency.max_ms IS 'Slowest median.';
COMMENT ON COLUMN series_latency.pte_sha256 IS 'The .pte file; NULL here and below if the night saw several.';
COMMENT ON COLUMN series_latency.executorch_version IS 'Version of ExecuTorch in the runner.';
COMMENT ON COLUMN series_latency.runner_sha256 IS 'The runner.';
COMMENT ON COLUMN series_latency.backend IS 'Delegate that the model was exported for.';
COMMENT ON COLUMN series_latency.seed IS 'Seed of its weights and inputs.';
