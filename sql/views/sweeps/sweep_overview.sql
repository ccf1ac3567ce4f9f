CREATE OR REPLACE VIEW sweep_overview AS
-- Models are counted apart: a count of names over all sessions takes twice as long.
WITH
measured AS (
    SELECT sweep_id, count(DISTINCT model.name) AS models
    FROM (SELECT DISTINCT sweep_id, model_id FROM session)
    JOIN model USING (model_id)
    GROUP BY sweep_id
)
SELECT
    sweep_id,
    sweep.name,
    sweep.night,
    sum(succeeded)::BIGINT AS succeeded,
    sum(failed)::BIGINT AS failed,
    sum(invalid)::BIGINT AS invalid,
    sum(discarded)::BIGINT AS discarded,
    count(DISTINCT device.name) AS devices,
    models,
    min(started_at) AS started_at,
    max(ended_at) AS ended_at
FROM _sweep_device
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
JOIN measured USING (sweep_id)
GROUP BY sweep_id, sweep.name, sweep.night, models;

COMMENT ON VIEW sweep_overview IS 'How the sessions of each sweep ended.';
COMMENT ON COLUMN sweep_overview.name IS 'Name of the sweep; `loose` for a loose ETDump.';
COMMENT ON COLUMN sweep_overview.devices IS 'Number of devices.';
COMMENT ON COLUMN sweep_overview.models IS 'Number of models.';
COMMENT ON COLUMN sweep_overview.started_at IS 'Start of the first session, UTC.';
COMMENT ON COLUMN sweep_overview.ended_at IS 'End of the last session, UTC.';
