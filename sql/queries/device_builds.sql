-- The newest change of each device's build, if it is within the last 14 nights of the device: its series begin again.
WITH
builds AS (
    SELECT
        device.name AS device,
        night,
        max_by(coalesce(build, os_version), started_at) AS build,
        row_number() OVER (PARTITION BY device.name ORDER BY night DESC) AS place
    FROM _sweep_device
    JOIN sweep USING (sweep_id)
    JOIN device USING (device_id)
    WHERE night IS NOT NULL
    GROUP BY device.name, night
)
SELECT device, night_before, night AS since, build_before, build
FROM (
    SELECT
        *,
        lag(build) OVER (PARTITION BY device ORDER BY night) AS build_before,
        lag(night) OVER (PARTITION BY device ORDER BY night) AS night_before
    FROM builds
    WHERE build IS NOT NULL
)
WHERE build <> build_before AND place <= 14
QUALIFY row_number() OVER (PARTITION BY device ORDER BY night DESC) = 1
ORDER BY device;
