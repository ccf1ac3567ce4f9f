-- The range of each device's conditions over its sessions, before and after.
SELECT
    device,
    any_value(without_times) AS without_times,
    moment,
    min(temperature_c) AS min_temperature_c,
    median(temperature_c) AS median_temperature_c,
    max(temperature_c) AS max_temperature_c,
    string_agg(DISTINCT thermal_status, ', ' ORDER BY thermal_status) AS thermal_status,
    min(battery_percent) AS min_battery_percent,
    max(battery_percent) AS max_battery_percent,
    median(load_1m) AS median_load_1m,
    max(load_1m) AS max_load_1m,
    string_agg(DISTINCT governor, ', ' ORDER BY governor) AS governor,
    min(frequency_mhz) AS min_frequency_mhz,
    max(frequency_mhz) AS max_frequency_mhz
FROM session_conditions
JOIN (
    SELECT device, any_value(_without_times(emulated, transport)) AS without_times
    FROM device_overview
    WHERE sweep_id = $sweep_id
    GROUP BY device
) AS kinds USING (device)
WHERE sweep_id = $sweep_id
GROUP BY device, moment
ORDER BY device, moment DESC;
