CREATE OR REPLACE VIEW portable_weight AS
WITH
cell_total AS (
    SELECT
        cell,
        sum(portable_ns) AS portable_ns,
        sum(delegated_ns) AS delegated_ns,
        sum(execute_ns) AS execute_ns
    FROM run
    JOIN run_summary USING (session_key, run_id)
    JOIN _session USING (session_key)
    WHERE NOT is_warmup
    GROUP BY cell
)
SELECT
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    portable_ns / runs / 1e6 AS portable_ms,
    portable_ns / execute_ns AS share,
    delegated_ns / runs / 1e6 AS delegated_ms,
    execute_ns / runs / 1e6 AS execute_ms,
    sessions,
    runs,
    runner_source
FROM cell_total
JOIN _cell USING (cell);

COMMENT ON VIEW portable_weight IS 'How much of Method::execute runs in portable operators, in the measured runs of all sessions that are measured alike.';
COMMENT ON COLUMN portable_weight.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN portable_weight.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN portable_weight.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN portable_weight.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN portable_weight.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN portable_weight.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN portable_weight.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN portable_weight.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN portable_weight.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN portable_weight.portable_ms IS 'Milliseconds per run in portable operators, on average.';
COMMENT ON COLUMN portable_weight.share IS 'Their part of Method::execute, 0 to 1.';
COMMENT ON COLUMN portable_weight.delegated_ms IS 'Milliseconds per run in delegated operators, on average.';
COMMENT ON COLUMN portable_weight.execute_ms IS 'Milliseconds of Method::execute, on average.';
COMMENT ON COLUMN portable_weight.sessions IS 'Sessions behind the row.';
COMMENT ON COLUMN portable_weight.runs IS 'Measured runs behind the row, warm-up ones left out.';
COMMENT ON COLUMN portable_weight.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
