CREATE OR REPLACE VIEW _sweep_device AS
SELECT
    sweep_id,
    device_id,
    count(*) AS sessions,
    count(*) FILTER (status = 'succeeded') AS succeeded,
    count(*) FILTER (status = 'failed') AS failed,
    count(*) FILTER (status = 'invalid' AND reason_code IS DISTINCT FROM 'first_session') AS invalid,
    count(*) FILTER (reason_code = 'first_session') AS discarded,
    sum(wall_s) AS wall_s,
    min(started_at) AS started_at,
    max(ended_at) AS ended_at
FROM session
GROUP BY sweep_id, device_id;

COMMENT ON VIEW _sweep_device IS 'How the sessions of each device of a sweep ended. Private: may change with any version.';
COMMENT ON COLUMN _sweep_device.wall_s IS 'Seconds that its sessions took together.';
COMMENT ON COLUMN _sweep_device.failed IS 'Sessions that failed, retried ones included.';
COMMENT ON COLUMN _sweep_device.invalid IS 'Sessions whose numbers do not count, discarded ones excluded.';
COMMENT ON COLUMN _sweep_device.discarded IS 'First sessions of a device, which are always discarded.';
