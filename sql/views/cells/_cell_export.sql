CREATE OR REPLACE VIEW _cell_export AS
SELECT cell, any_value(export_key ORDER BY model_id) AS export_key
FROM _session
JOIN model USING (model_id)
GROUP BY cell;

COMMENT ON VIEW _cell_export IS 'The key by which the exported model of each cell is found again. Private: may change with any version.';
COMMENT ON COLUMN _cell_export.export_key IS 'The same for all sessions of a cell; NULL where it was not recorded.';
