-- Devices as they were in a sweep; without a sweep, every device as it was in its newest one, with its sessions of that
-- night in all sweeps.
SELECT
    device_overview.* REPLACE (
        if($sweep_id IS NULL, sum(sessions) OVER of_night, sessions)::BIGINT AS sessions,
        sum(succeeded) OVER of_night::BIGINT AS succeeded
    ),
    _without_times(emulated, transport) AS without_times,
    nullif(concat_ws(' ', os, os_version), '') AS system,
    coalesce(sum(waited_s) OVER of_night, 0) AS waited_s,
    noise
FROM device_overview
LEFT JOIN (
    SELECT sweep_id, device, sum(waited_s) AS waited_s
    FROM device_wait
    GROUP BY sweep_id, device
) AS waits USING (sweep_id, device)
LEFT JOIN (
    SELECT night, device, max(noise) AS noise
    FROM device_noise
    GROUP BY night, device
) AS noises USING (night, device)
WHERE ($sweep_id IS NULL AND night IS NOT NULL) OR sweep_id = $sweep_id
WINDOW of_night AS (PARTITION BY device, night)
QUALIFY $sweep_id IS NOT NULL OR row_number() OVER (
        PARTITION BY device ORDER BY night DESC, started_at DESC, device_overview
    ) = 1
ORDER BY $sweep_id IS NOT NULL AND without_times IS NOT NULL, device, started_at;
