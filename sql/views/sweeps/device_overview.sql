-- Reads: _sweep_device, sweep, device
-- The devices of a sweep; two rows for a device whose facts changed during it.
CREATE OR REPLACE VIEW device_overview AS
SELECT
    sweep_id,
    sweep.night,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    device.name AS device,
    emulated,
    transport,
    site,
    labels,
    os,
    os_version,
    build,
    device_model,
    soc,
    cores,
    memory_bytes,
    arch,
    platform,
    sme,
    sme2,
    hostname,
    serial,
    sessions,
    succeeded,
    -- Start of its first session, UTC.
    started_at,
    -- End of its last session, UTC.
    ended_at
FROM _sweep_device
JOIN sweep USING (sweep_id)
JOIN device USING (device_id);
