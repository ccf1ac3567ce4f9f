-- How the device was before and after sessions.
SELECT session_id, device_conditions.*
FROM device_conditions
JOIN session USING (session_key)
WHERE _is_one_of(session_key, $session_keys::INTEGER[])
ORDER BY session_id, moment DESC;
