-- Which devices were hottest, most throttled or most loaded around their sessions?
SELECT
    night,
    sweep_id,
    device,
    max(temperature_c) AS max_temperature_c,
    min(temperature_c) AS min_temperature_c,
    max(thermal_status) AS max_thermal_status,
    min(battery_percent) AS min_battery_percent,
    max(load_1m) AS max_load_1m,
    min(free_memory_bytes) AS min_free_memory_bytes,
    count(DISTINCT session_id) AS sessions
FROM session_conditions
WHERE _has_times(emulated)
    AND ($device IS NULL OR device = $device)
    AND ($sweep IS NULL OR sweep_id = $sweep)
    AND ($since IS NULL OR night >= $since::DATE)
GROUP BY night, sweep_id, device
ORDER BY max_temperature_c DESC NULLS LAST, max_load_1m DESC NULLS LAST, sweep_id, device;
