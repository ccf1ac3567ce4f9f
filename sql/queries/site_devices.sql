-- Every device as it was in its newest sweep, and how its sessions of that night ended, in all its sweeps.
SELECT
    device,
    _without_times(emulated, transport) AS without_times,
    transport,
    device_model,
    soc,
    sme2,
    nullif(concat_ws(' ', os, os_version), '') AS system,
    build,
    night,
    sum(sessions) OVER of_night::BIGINT AS sessions,
    sum(succeeded) OVER of_night::BIGINT AS succeeded,
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
WHERE night IS NOT NULL
WINDOW of_night AS (PARTITION BY device, night)
QUALIFY row_number() OVER (PARTITION BY device ORDER BY night DESC, started_at DESC) = 1
ORDER BY device;
