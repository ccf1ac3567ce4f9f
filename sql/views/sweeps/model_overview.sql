-- Reads: session, sweep, model
-- The exported models of a sweep.
CREATE OR REPLACE VIEW model_overview AS
SELECT
    sweep_id,
    sweep.night,
    -- Name of the model, as model@case if it is measured in several ways (methods, shapes); the name of the file for a
    -- loose ETDump.
    model.name AS model,
    precision,
    seed,
    export_key,
    pte_sha256,
    pte_bytes,
    -- Version of ExecuTorch that exported it.
    executorch_version,
    versions,
    layer_count,
    converted_layers,
    layer_weights,
    converted_weights,
    planned_bytes,
    live_bytes,
    needed_bytes,
    constant_bytes,
    delegate_bytes,
    -- Sessions behind the row.
    count(*) AS sessions
FROM session
JOIN sweep USING (sweep_id)
JOIN model USING (model_id)
WHERE NOT _is_roof(model.name)
GROUP BY ALL;
