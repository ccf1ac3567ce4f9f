-- What failed or was invalid in a night, by device and reason; not what succeeded when it was repeated.
SELECT
    device,
    _without_times(failed_session.emulated, any_value(transport)) AS without_times,
    status,
    coalesce(reason_code, 'unknown') AS reason_code,
    any_value(reason) AS reason,
    count(*) AS sessions,
    min(session_id) AS session_id
FROM failed_session
JOIN (
    SELECT session_id, sweep_id, transport
    FROM session
    JOIN device USING (device_id)
) AS reached USING (session_id, sweep_id)
WHERE _is_one_of(night, [$night::DATE]) AND NOT superseded
GROUP BY device, failed_session.emulated, status, reason_code
ORDER BY sessions DESC, device, reason_code;
