-- Reads: _session
-- Every session, however it ended.
CREATE OR REPLACE VIEW session_overview AS
SELECT
    COLUMNS(_cell_name()),
    session_id,
    status,
    reason_code,
    reason,
    attempt,
    repetition,
    executions,
    warmup_executions,
    started_at,
    ended_at,
    wall_s,
    exit_code,
    signal,
    command,
    outputs_repeat,
    sme_hardware,
    sme_reported,
    sme2_hardware,
    sme2_reported,
    farm_version,
    runner_source,
    seed,
    purpose,
    comparison,
    arm,
    delegate_note,
    COLUMNS(_cell_content())
FROM _session;
