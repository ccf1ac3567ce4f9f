-- Every device as it was in its newest sweep, and how its sessions of that night ended.
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
    sessions,
    succeeded,
    coalesce(waited_s, 0) AS waited_s,
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
QUALIFY row_number() OVER (PARTITION BY device ORDER BY night DESC, started_at DESC) = 1
ORDER BY device;
