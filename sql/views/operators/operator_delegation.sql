CREATE OR REPLACE VIEW operator_delegation AS
WITH
used AS (SELECT DISTINCT sweep_id, model_id FROM session)
SELECT
    sweep_id,
    sweep.night,
    model.name AS model,
    precision,
    operator,
    CASE WHEN placement = 'portable' AND _is_scalar_operator(operator) THEN 'scalar' ELSE placement END AS placement,
    count,
    reason,
    pte_sha256
FROM used
JOIN sweep USING (sweep_id)
JOIN model USING (model_id)
JOIN model_operator USING (model_id);

COMMENT ON VIEW operator_delegation IS 'What the exporter delegated and what stayed portable, by model of a sweep.';
COMMENT ON COLUMN operator_delegation.operator IS 'The operator in the exported graph, such as aten.mean.dim.';
COMMENT ON COLUMN operator_delegation.placement IS 'delegated, portable, or scalar: a shape or a number that the runtime computes itself, without a kernel for tensors.';
COMMENT ON COLUMN operator_delegation.count IS 'How often the graph contains it.';
COMMENT ON COLUMN operator_delegation.reason IS 'Why it stayed portable, if the partitioner gives a reason.';
