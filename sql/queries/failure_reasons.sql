-- What failed or was invalid in each night, by device and reason; not what succeeded when it was repeated.
SELECT
    night,
    device,
    _without_times(emulated, transport) AS without_times,
    status,
    coalesce(reason_code, 'unknown') AS reason_code,
    arg_min_null(reason, session_id) AS reason,
    count(*) AS sessions,
    min(session_id) AS session_id
FROM failed_session
JOIN (SELECT name AS device, min(transport) AS transport FROM device GROUP BY name) AS reached USING (device)
WHERE night IS NOT NULL AND NOT superseded
GROUP BY night, device, emulated, transport, status, reason_code
ORDER BY night, sessions DESC, device, reason_code, status, without_times;
