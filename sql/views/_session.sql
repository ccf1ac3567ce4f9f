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
    hash((sweep_id, device.name, model.name, model.precision, variant, mode, threads, runner_source)) AS cell
FROM session
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
JOIN model USING (model_id)
LEFT JOIN runner USING (runner_id);

COMMENT ON VIEW _session IS 'Every session with what it is compared by. Private: may change with any version.';
COMMENT ON COLUMN _session.session_key IS 'Number of the session inside this warehouse.';
COMMENT ON COLUMN _session.session_id IS 'The session, as its bundle names it; the first 16 digits of the file''s SHA-256 for a loose ETDump.';
COMMENT ON COLUMN _session.attempt IS '1 for the first try of a session, counting up.';
COMMENT ON COLUMN _session.slot IS 'Place of the session among its like in the sweep, from 0; -1 for the one that is discarded by rule.';
COMMENT ON COLUMN _session.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN _session.device_id IS 'Number of the device, as it was then, inside this warehouse.';
COMMENT ON COLUMN _session.model_id IS 'Number of the exported model inside this warehouse.';
COMMENT ON COLUMN _session.runner_id IS 'Number of the runner inside this warehouse.';
COMMENT ON COLUMN _session.series_id IS 'What the session may be compared with over nights; see series_latency.';
COMMENT ON COLUMN _session.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN _session.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN _session.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN _session.executions IS 'Executions asked for, warm-up ones included.';
COMMENT ON COLUMN _session.warmup_executions IS 'First executions that never enter statistics.';
COMMENT ON COLUMN _session.status IS 'succeeded, failed or invalid.';
COMMENT ON COLUMN _session.reason_code IS 'The kind of reason, one word; NULL if it succeeded.';
COMMENT ON COLUMN _session.reason IS 'Why it did not succeed, one sentence.';
COMMENT ON COLUMN _session.log_tail IS 'Last lines that the runner wrote to stderr.';
COMMENT ON COLUMN _session.started_at IS 'Start, UTC.';
COMMENT ON COLUMN _session.ended_at IS 'End, UTC.';
COMMENT ON COLUMN _session.command IS 'The runner''s command line on the device, as a JSON list.';
COMMENT ON COLUMN _session.exit_code IS 'Exit code of the runner; NULL if it did not run or was killed.';
COMMENT ON COLUMN _session.signal IS 'Signal that killed the runner, or NULL.';
COMMENT ON COLUMN _session.wall_s IS 'Seconds that the runner ran.';
COMMENT ON COLUMN _session.load_ns IS 'Nanoseconds to load the model, by the runner.';
COMMENT ON COLUMN _session.peak_resident_bytes IS 'Peak resident memory of the runner.';
COMMENT ON COLUMN _session.threads_used IS 'Threads that the runner really used.';
COMMENT ON COLUMN _session.sme2_hardware IS 'Whether the runner found SME2; NULL if it does not say.';
COMMENT ON COLUMN _session.sme2_told IS 'What the runner told XNNPACK about SME2; NULL if it does not say.';
COMMENT ON COLUMN _session.etdump_sha256 IS 'SHA-256 of its ETDump; NULL if it has no runs.';
COMMENT ON COLUMN _session.farm_version IS 'Version of the farm that measured.';
COMMENT ON COLUMN _session.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN _session.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN _session.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN _session.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN _session.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN _session.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
COMMENT ON COLUMN _session.cell IS 'Equal for sessions of the same sweep, device, model, precision, variant, mode, threads and runner source.';
