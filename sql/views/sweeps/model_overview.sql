CREATE OR REPLACE VIEW model_overview AS
SELECT
    sweep_id,
    sweep.night,
    model.name AS model,
    precision,
    seed,
    export_key,
    pte_sha256,
    pte_bytes,
    executorch_version,
    versions,
    count(*) AS sessions
FROM session
JOIN sweep USING (sweep_id)
JOIN model USING (model_id)
GROUP BY ALL;

COMMENT ON VIEW model_overview IS 'The exported models of a sweep.';
COMMENT ON COLUMN model_overview.export_key IS 'Hash of everything that the export was made from.';
COMMENT ON COLUMN model_overview.pte_bytes IS 'Size of the .pte file.';
COMMENT ON COLUMN model_overview.executorch_version IS 'Version of ExecuTorch that exported it.';
COMMENT ON COLUMN model_overview.versions IS 'All versions recorded by its export, JSON.';
