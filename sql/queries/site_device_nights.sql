-- Each night of every device: its sessions, how they ended, and its temperature.
SELECT
    device,
    night,
    count(*) AS sessions,
    count(*) FILTER (status = 'succeeded') AS succeeded,
    count(*) FILTER (status = 'failed') AS failed,
    count(*) FILTER (status = 'invalid' AND reason_code IS DISTINCT FROM 'first_session') AS invalid,
    sum(wall_s) / 3600 AS busy_hours,
    max(temperature_c) AS most_temperature_c,
    any_value(build) AS build
FROM _session
LEFT JOIN (
    SELECT session_key, max(temperature_c) AS temperature_c
    FROM device_conditions
    GROUP BY session_key
) AS conditions USING (session_key)
WHERE night IS NOT NULL
GROUP BY device, night
ORDER BY device, night DESC;
