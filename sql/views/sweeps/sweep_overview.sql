-- Reads: session, model, _sweep_device, sweep, device
-- How the sessions of each sweep ended.
CREATE OR REPLACE VIEW sweep_overview AS
-- Models are counted apart: a count of names over all sessions takes twice as long.
WITH
measured AS (
    SELECT sweep_id, count(DISTINCT _without_delegate(model.name)) FILTER (NOT _is_roof(model.name)) AS models
    FROM (SELECT DISTINCT sweep_id, model_id FROM session)
    JOIN model USING (model_id)
    GROUP BY sweep_id
)
SELECT
    sweep_id,
    -- Name of the sweep; `loose` for a loose ETDump.
    sweep.name,
    sweep.night,
    -- Sessions that succeeded.
    sum(succeeded)::BIGINT AS succeeded,
    -- Sessions that failed, retried ones included.
    sum(failed)::BIGINT AS failed,
    -- Sessions whose numbers do not count, discarded ones excluded.
    sum(invalid)::BIGINT AS invalid,
    -- First sessions of a device, which are always discarded.
    sum(discarded)::BIGINT AS discarded,
    -- Number of devices.
    count(DISTINCT device.name) AS devices,
    -- Number of models, each counted once for all its delegates.
    models,
    -- Start of the first session, UTC.
    min(started_at) AS started_at,
    -- End of the last session, UTC.
    max(ended_at) AS ended_at,
    -- The day on which the night was measured, if that was later; NULL otherwise.
    CASE WHEN sweep.measured_later THEN max(started_at)::DATE END AS measured_later
FROM _sweep_device
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
JOIN measured USING (sweep_id)
GROUP BY sweep_id, sweep.name, sweep.night, sweep.measured_later, models;
