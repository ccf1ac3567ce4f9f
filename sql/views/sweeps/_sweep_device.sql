-- Reads: session
-- How the sessions of each device of a sweep ended.
CREATE OR REPLACE VIEW _sweep_device AS
SELECT
    sweep_id,
    device_id,
    -- Sessions behind the row.
    count(*) AS sessions,
    -- Sessions that succeeded.
    count(*) FILTER (status = 'succeeded') AS succeeded,
    -- Sessions that failed, retried ones included.
    count(*) FILTER (status = 'failed') AS failed,
    -- Sessions whose numbers do not count, discarded ones excluded.
    count(*) FILTER (status = 'invalid' AND reason_code IS DISTINCT FROM 'first_session') AS invalid,
    -- First sessions of a device, which are always discarded.
    count(*) FILTER (reason_code = 'first_session') AS discarded,
    -- Seconds that its sessions took together.
    sum(wall_s) AS wall_s,
    -- When the first of them started, UTC.
    min(started_at) AS started_at,
    -- When the last of them ended, UTC.
    max(ended_at) AS ended_at
FROM session
GROUP BY sweep_id, device_id;
