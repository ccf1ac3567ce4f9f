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
    sme2,
    hostname,
    serial,
    count(*) AS sessions,
    count(*) FILTER (status = 'succeeded') AS succeeded,
    min(started_at) AS started_at,
    max(ended_at) AS ended_at
FROM session
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
GROUP BY ALL;

COMMENT ON VIEW device_overview IS 'What each device of a sweep is; two rows for a device whose facts changed in between.';
COMMENT ON COLUMN device_overview.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN device_overview.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN device_overview.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN device_overview.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN device_overview.transport IS 'local, ssh or adb.';
COMMENT ON COLUMN device_overview.site IS 'Where it stands.';
COMMENT ON COLUMN device_overview.labels IS 'Its labels in the inventory, JSON.';
COMMENT ON COLUMN device_overview.os IS 'linux, macos or android; NULL here and below where it is not known.';
COMMENT ON COLUMN device_overview.os_version IS 'Version of the system.';
COMMENT ON COLUMN device_overview.build IS 'Build of the system.';
COMMENT ON COLUMN device_overview.device_model IS 'Model of the device.';
COMMENT ON COLUMN device_overview.soc IS 'System on chip or processor.';
COMMENT ON COLUMN device_overview.cores IS 'Processor cores.';
COMMENT ON COLUMN device_overview.memory_bytes IS 'Main memory.';
COMMENT ON COLUMN device_overview.arch IS 'Architecture.';
COMMENT ON COLUMN device_overview.platform IS 'The runner''s platform.';
COMMENT ON COLUMN device_overview.sme2 IS 'Whether it has SME2.';
COMMENT ON COLUMN device_overview.hostname IS 'Its own name.';
COMMENT ON COLUMN device_overview.serial IS 'Its serial number.';
COMMENT ON COLUMN device_overview.sessions IS 'Sessions behind the row.';
COMMENT ON COLUMN device_overview.succeeded IS 'Those that succeeded.';
COMMENT ON COLUMN device_overview.started_at IS 'Start of its first session, UTC.';
COMMENT ON COLUMN device_overview.ended_at IS 'End of its last session, UTC.';
