-- Remove what no session uses any more. Runs after the sessions of the transaction were inserted.
DELETE FROM node WHERE model_id NOT IN (SELECT model_id FROM session);
DELETE FROM model_operator WHERE model_id NOT IN (SELECT model_id FROM session);
DELETE FROM model WHERE model_id NOT IN (SELECT model_id FROM session);
DELETE FROM source_map
WHERE source_map_id NOT IN (SELECT source_map_id FROM session WHERE source_map_id IS NOT NULL);
DELETE FROM node_source WHERE source_map_id NOT IN (SELECT source_map_id FROM source_map);
DELETE FROM module_class WHERE source_map_id NOT IN (SELECT source_map_id FROM source_map);
DELETE FROM device WHERE device_id NOT IN (SELECT device_id FROM session);
DELETE FROM runner WHERE runner_id NOT IN (SELECT runner_id FROM session WHERE runner_id IS NOT NULL);
DELETE FROM series WHERE series_id NOT IN (SELECT series_id FROM session WHERE series_id IS NOT NULL);
DELETE FROM sweep WHERE sweep_id NOT IN (SELECT sweep_id FROM session);
DELETE FROM skipped_model WHERE sweep_id NOT IN (SELECT sweep_id FROM sweep);
