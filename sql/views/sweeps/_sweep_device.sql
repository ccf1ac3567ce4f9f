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
COMMENT ON COLUMN _sweep_device.started_at IS 'When the first of them started, UTC.';
COMMENT ON COLUMN _sweep_device.ended_at IS 'When the last of them ended, UTC.';
