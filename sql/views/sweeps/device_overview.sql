CREATE OR REPLACE VIEW device_overview AS
SELECT
    sweep_id,
    sweep.night,
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
    started_at,
    ended_at
FROM _sweep_device
JOIN sweep USING (sweep_id)
JOIN device USING (device_id);

COMMENT ON VIEW device_overview IS 'The devices of a sweep; two rows for a device whose facts changed during it.';
COMMENT ON COLUMN device_overview.site IS 'Site of the device in the inventory.';
COMMENT ON COLUMN device_overview.labels IS 'Labels of the device in the inventory, JSON.';
COMMENT ON COLUMN device_overview.os IS 'linux, macos or android; NULL here and below if unknown.';
COMMENT ON COLUMN device_overview.cores IS 'Processor cores.';
COMMENT ON COLUMN device_overview.memory_bytes IS 'Main memory.';
COMMENT ON COLUMN device_overview.arch IS 'Architecture.';
COMMENT ON COLUMN device_overview.sme IS 'Whether the device has SME of any version; NULL if unknown.';
COMMENT ON COLUMN device_overview.hostname IS 'Host name.';
COMMENT ON COLUMN device_overview.started_at IS 'Start of its first session, UTC.';
COMMENT ON COLUMN device_overview.ended_at IS 'End of its last session, UTC.';
