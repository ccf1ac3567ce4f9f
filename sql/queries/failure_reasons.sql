-- What failed or was invalid in a night, by device and reason; not what succeeded when it was repeated.
SELECT
    device,
    _without_times(emulated, transport) AS without_times,
    status,
    coalesce(reason_code, 'unknown') AS reason_code,
    arg_min_null(reason, session_id) AS reason,
    count(*) AS sessions,
    min(session_id) AS session_id
FROM failed_session
JOIN (SELECT name AS device, any_value(transport) AS transport FROM device GROUP BY name) AS reached USING (device)
WHERE _is_one_of(night, [$night::DATE]) AND NOT superseded
GROUP BY device, emulated, transport, status, reason_code
ORDER BY sessions DESC, device, reason_code;
