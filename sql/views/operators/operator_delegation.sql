-- Reads: session, sweep, model, model_operator
-- What the exporter delegated and what stayed portable, by model of a sweep.
CREATE OR REPLACE VIEW operator_delegation AS
WITH
used AS (SELECT DISTINCT sweep_id, model_id FROM session)
SELECT
    sweep_id,
    sweep.night,
    -- Name of the model, as model@case if it is measured in several ways (methods, shapes); the name of the file for a
    -- loose ETDump.
    model.name AS model,
    precision,
    -- The operator in the exported graph, such as aten.mean.dim.
    operator,
    -- delegated, portable, or scalar: a shape or a number that the runtime computes itself, without a kernel for
    -- tensors.
    CASE WHEN placement = 'portable' AND _is_scalar_operator(operator) THEN 'scalar' ELSE placement END AS placement,
    -- How often the graph contains it.
    count,
    -- Why it stayed portable, if the partitioner gives a reason.
    reason,
    pte_sha256
FROM used
JOIN sweep USING (sweep_id)
JOIN model USING (model_id)
JOIN model_operator USING (model_id);
