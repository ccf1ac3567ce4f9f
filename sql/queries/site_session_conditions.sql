-- How the device was before and after a session.
SELECT
    moment,
    temperature_c,
    thermal_status,
    battery_percent,
    load_1m,
    governor,
    frequency_mhz
FROM session_conditions
WHERE session_id = $session_id
ORDER BY moment DESC;
