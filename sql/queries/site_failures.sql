-- What failed or was invalid in a night, by device and reason; not what succeeded when it was repeated.
SELECT
    device,
    status,
    coalesce(reason_code, 'unknown') AS reason_code,
    any_value(reason) AS reason,
    count(*) AS sessions,
    min(session_id) AS session_id
FROM failed_session
WHERE _is_one_of(night, [$night::DATE]) AND NOT superseded
GROUP BY device, status, reason_code
ORDER BY sessions DESC, device, reason_code;
