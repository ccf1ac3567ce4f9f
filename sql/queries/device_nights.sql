-- Each night of every device: its sessions, how they ended, and its temperature.
WITH
hottest AS (
    SELECT device_id, sweep_id, max(temperature_c) AS temperature_c
    FROM device_conditions
    JOIN session USING (session_key)
    GROUP BY device_id, sweep_id
)
SELECT
    device.name AS device,
    night,
    sum(sessions)::BIGINT AS sessions,
    sum(succeeded)::BIGINT AS succeeded,
    sum(failed)::BIGINT AS failed,
    sum(invalid)::BIGINT AS invalid,
    sum(wall_s) / 3600 AS busy_hours,
    max(temperature_c) AS max_temperature_c,
    max_by(build, started_at) AS build
FROM _sweep_device
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
LEFT JOIN hottest USING (device_id, sweep_id)
WHERE night IS NOT NULL
GROUP BY device.name, night
ORDER BY device.name, night DESC;
