-- Sessions in their order, however they ended.
SELECT
    _session.*,
    _without_times(_session.emulated, transport) AS without_times,
    CASE WHEN _has_times(_session.emulated) THEN session_time.execute_ns / typical_runs / 1e6 END AS time_ms,
    CASE WHEN _has_times(_session.emulated) THEN load_ns / 1e6 END AS load_ms,
    CASE WHEN _has_times(_session.emulated) THEN first_load_ns / 1e6 END AS first_load_ms,
    is_typical
FROM _session
JOIN device USING (device_id)
LEFT JOIN session_time USING (session_key)
WHERE _is_one_of(session_key, $session_keys::INTEGER[])
ORDER BY started_at, session_id;
