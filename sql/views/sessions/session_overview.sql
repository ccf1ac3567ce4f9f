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

COMMENT ON VIEW session_overview IS 'Every session, however it ended.';
