-- Reads: _sweep_device, sweep, device
-- The devices of a sweep; two rows for a device whose facts changed during it.
CREATE OR REPLACE VIEW device_overview AS
SELECT
    sweep_id,
    sweep.night,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    device.name AS device,
    emulated,
    sessions,
    succeeded,
    -- Start of its first session, UTC.
    started_at,
    -- End of its last session, UTC.
    ended_at,
    transport,
    site,
    labels,
    os,
    os_version,
    device_model,
    soc,
    sme,
    sme2,
    cores,
    memory_bytes,
    arch,
    platform,
    hostname,
    serial,
    build
FROM _sweep_device
JOIN sweep USING (sweep_id)
JOIN device USING (device_id);
