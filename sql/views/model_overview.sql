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
COMMENT ON COLUMN model_overview.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN model_overview.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN model_overview.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN model_overview.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN model_overview.seed IS 'Seed of its weights and inputs.';
COMMENT ON COLUMN model_overview.export_key IS 'Content that it was exported from.';
COMMENT ON COLUMN model_overview.pte_sha256 IS 'SHA-256 of the .pte file; NULL if the export failed.';
COMMENT ON COLUMN model_overview.pte_bytes IS 'Size of the .pte file.';
COMMENT ON COLUMN model_overview.executorch_version IS 'Version of ExecuTorch that exported it.';
COMMENT ON COLUMN model_overview.versions IS 'All versions that its export states, JSON.';
COMMENT ON COLUMN model_overview.sessions IS 'Sessions behind the row.';
