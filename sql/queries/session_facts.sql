-- Sessions, however they ended.
SELECT
    session_id,
    sweep_id,
    night,
    _session.device,
    _without_times(_session.emulated, transport) AS without_times,
    model,
    precision,
    variant,
    mode,
    threads,
    status,
    reason_code,
    reason,
    attempt,
    executions,
    warmup_executions,
    started_at,
    ended_at,
    wall_s,
    exit_code,
    farm_version,
    series_id,
    cell,
    pte_sha256,
    runner_sha256,
    _session.serial,
    _session.build,
    log_tail
FROM _session
JOIN device USING (device_id)
WHERE _is_one_of(session_key, $session_keys::INTEGER[]);
