CREATE OR REPLACE VIEW _session AS
SELECT
    session.*,
    sweep.night,
    device.name AS device,
    device.emulated,
    model.name AS model,
    model.precision,
    coalesce(runner.source_sha256, runner.runner_sha256) AS runner_source,
    -- One number for what is measured alike, since joins on columns lose the rows where one is NULL.
    hash((sweep_id, device.name, model.name, model.precision, variant, mode, threads, runner_source)) AS cell,
    hash((sweep_id, device.name, emulated, model.name, model.precision, mode, threads, runner_source)) AS pair
FROM session
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
JOIN model USING (model_id)
LEFT JOIN runner USING (runner_id);

COMMENT ON VIEW _session IS 'Every session with what it is compared by. Private: may change with any version.';
