-- What failed or was invalid in a night, by device and reason.
SELECT
    device,
    status,
    coalesce(reason_code, 'unknown') AS reason_code,
    any_value(reason) AS reason,
    count(*) AS sessions,
    min(session_id) AS session_id
FROM failed_session
WHERE night = $night AND NOT superseded AND reason_code IS DISTINCT FROM 'first_session'
GROUP BY device, status, reason_code
ORDER BY sessions DESC, device, reason_code;
