CREATE OR REPLACE VIEW operator_delegation AS
WITH
used AS (SELECT DISTINCT sweep_id, model_id FROM session)
SELECT
    sweep_id,
    sweep.night,
    model.name AS model,
    precision,
    operator,
    placement,
    count,
    reason,
    pte_sha256
FROM used
JOIN sweep USING (sweep_id)
JOIN model USING (model_id)
JOIN model_operator USING (model_id);

COMMENT ON VIEW operator_delegation IS 'What the exporter gave to the delegate and what stayed portable, by model of a sweep.';
COMMENT ON COLUMN operator_delegation.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN operator_delegation.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN operator_delegation.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN operator_delegation.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN operator_delegation.operator IS 'The operator in the exported graph, such as aten.mean.dim.';
COMMENT ON COLUMN operator_delegation.placement IS 'delegated or portable.';
COMMENT ON COLUMN operator_delegation.count IS 'How many of it the graph holds.';
COMMENT ON COLUMN operator_delegation.reason IS 'Why it stayed portable, where the partitioner says so.';
COMMENT ON COLUMN operator_delegation.pte_sha256 IS 'SHA-256 of the .pte file.';
