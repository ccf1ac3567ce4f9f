CREATE OR REPLACE VIEW _cell AS
SELECT
    cell,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    runner_source,
    count(*) AS sessions,
    sum(executions - warmup_executions)::BIGINT AS runs
FROM _session
WHERE status = 'succeeded' AND mode = 'timing' AND executions > warmup_executions
GROUP BY ALL;

COMMENT ON VIEW _cell IS 'What is measured alike, with the sessions and runs that may enter statistics. Private: may change with any version.';
COMMENT ON COLUMN _cell.cell IS 'Equal for sessions of the same sweep, device, model, precision, variant, mode, threads and runner source.';
COMMENT ON COLUMN _cell.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN _cell.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN _cell.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN _cell.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN _cell.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN _cell.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN _cell.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN _cell.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN _cell.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN _cell.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
COMMENT ON COLUMN _cell.sessions IS 'Sessions behind the row.';
COMMENT ON COLUMN _cell.runs IS 'Measured runs behind the row, warm-up ones left out.';
