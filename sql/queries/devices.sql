-- What each device was during the sweep.
SELECT
    device,
    _without_times(emulated, transport) AS without_times,
    transport,
    device_model,
    soc,
    cores,
    memory_bytes,
    sme2,
    nullif(concat_ws(' ', os, os_version), '') AS system,
    build,
    sessions
FROM device_overview
WHERE sweep_id = $sweep_id
ORDER BY without_times IS NOT NULL, device, started_at;
