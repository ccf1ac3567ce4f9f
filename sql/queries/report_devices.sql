-- What each device was during the sweep.
SELECT
    device,
    emulated IS TRUE AS emulated,
    transport,
    device_model,
    soc,
    cores,
    memory_bytes,
    sme2,
    os,
    os_version,
    build,
    sessions
FROM device_overview
WHERE sweep_id = $sweep_id
ORDER BY emulated, device, started_at;
