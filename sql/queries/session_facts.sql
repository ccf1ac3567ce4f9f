-- Sessions in their order, however they ended.
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
    log_tail,
    CASE WHEN _has_times(_session.emulated) THEN session_time.execute_ns / typical_runs / 1e6 END AS time_ms,
    is_typical
FROM _session
JOIN device USING (device_id)
LEFT JOIN session_time USING (session_key)
WHERE _is_one_of(session_key, $session_keys::INTEGER[])
ORDER BY started_at, session_id;
