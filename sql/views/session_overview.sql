CREATE OR REPLACE VIEW session_overview AS
SELECT
    session_id,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    status,
    reason_code,
    reason,
    attempt,
    slot AS session_index,
    executions,
    warmup_executions,
    started_at,
    ended_at,
    wall_s,
    exit_code,
    signal,
    command,
    sme2_hardware,
    sme2_told,
    farm_version,
    runner_source
FROM _session;

COMMENT ON VIEW session_overview IS 'One row per session, whatever became of it.';
COMMENT ON COLUMN session_overview.session_id IS 'The session, as its bundle names it; the first 16 digits of the file''s SHA-256 for a loose ETDump.';
COMMENT ON COLUMN session_overview.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN session_overview.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN session_overview.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_overview.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN session_overview.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN session_overview.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_overview.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_overview.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN session_overview.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN session_overview.status IS 'succeeded, failed or invalid.';
COMMENT ON COLUMN session_overview.reason_code IS 'The kind of reason, one word; NULL if it succeeded.';
COMMENT ON COLUMN session_overview.reason IS 'Why it did not succeed, one sentence.';
COMMENT ON COLUMN session_overview.attempt IS '1 for the first try, counting up.';
COMMENT ON COLUMN session_overview.session_index IS 'Place of the session among its like in the sweep, from 0; -1 for the one that is discarded by rule.';
COMMENT ON COLUMN session_overview.executions IS 'Executions asked for, warm-up ones included.';
COMMENT ON COLUMN session_overview.warmup_executions IS 'First executions that never enter statistics.';
COMMENT ON COLUMN session_overview.started_at IS 'Start, UTC.';
COMMENT ON COLUMN session_overview.ended_at IS 'End, UTC.';
COMMENT ON COLUMN session_overview.wall_s IS 'Seconds that the runner ran.';
COMMENT ON COLUMN session_overview.exit_code IS 'Exit code of the runner; NULL if it did not run or was killed.';
COMMENT ON COLUMN session_overview.signal IS 'Signal that killed the runner, or NULL.';
COMMENT ON COLUMN session_overview.command IS 'The runner''s command line on the device, as a JSON list.';
COMMENT ON COLUMN session_overview.sme2_hardware IS 'Whether the runner found SME2; NULL if it does not say.';
COMMENT ON COLUMN session_overview.sme2_told IS 'What the runner told XNNPACK about SME2; NULL if it does not say.';
COMMENT ON COLUMN session_overview.farm_version IS 'Version of the farm that measured.';
COMMENT ON COLUMN session_overview.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
