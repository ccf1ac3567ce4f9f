-- How the device was before and after sessions.
SELECT
    session_id,
    moment,
    temperature_c,
    thermal_status,
    battery_percent,
    load_1m,
    governor,
    frequency_mhz
FROM session_conditions
WHERE list_contains($session_ids::VARCHAR[], session_id)
ORDER BY session_id, moment DESC;
