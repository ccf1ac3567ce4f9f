CREATE OR REPLACE VIEW sweep_overview AS
SELECT
    sweep_id,
    sweep.name,
    sweep.night,
    count(*) FILTER (status = 'succeeded') AS succeeded,
    count(*) FILTER (status = 'failed') AS failed,
    count(*) FILTER (status = 'invalid' AND reason_code IS DISTINCT FROM 'first_session') AS invalid,
    count(*) FILTER (reason_code = 'first_session') AS discarded,
    count(DISTINCT device.name) AS devices,
    count(DISTINCT model.name) AS models,
    min(started_at) AS started_at,
    max(ended_at) AS ended_at
FROM session
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
JOIN model USING (model_id)
GROUP BY sweep_id, sweep.name, sweep.night;

COMMENT ON VIEW sweep_overview IS 'How the sessions of each sweep ended.';
COMMENT ON COLUMN sweep_overview.name IS 'Name of the sweep; `loose` for a loose ETDump.';
COMMENT ON COLUMN sweep_overview.failed IS 'Sessions that failed, retried ones included.';
COMMENT ON COLUMN sweep_overview.invalid IS 'Sessions whose numbers do not count, discarded ones excluded.';
COMMENT ON COLUMN sweep_overview.discarded IS 'First sessions of a device, which are always discarded.';
COMMENT ON COLUMN sweep_overview.devices IS 'Number of devices.';
COMMENT ON COLUMN sweep_overview.models IS 'Number of models.';
COMMENT ON COLUMN sweep_overview.started_at IS 'Start of the first session, UTC.';
COMMENT ON COLUMN sweep_overview.ended_at IS 'End of the last session, UTC.';
