-- Reads: _session, model
-- The key by which the exported model of each cell is found again.
CREATE OR REPLACE VIEW _cell_export AS
SELECT
    cell,
    -- The same for all sessions of a cell; NULL where it was not recorded.
    any_value(export_key ORDER BY model_id) AS export_key
FROM _session
JOIN model USING (model_id)
GROUP BY cell;
