CREATE OR REPLACE VIEW run_latency AS
SELECT
    session_id,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    run_index,
    is_warmup,
    execute_ns,
    execute_ns / 1e6 AS execute_ms,
    etdump_sha256,
    status,
    runner_source
FROM run
JOIN _session USING (session_key)
WHERE status = 'succeeded' AND mode = 'timing';

COMMENT ON VIEW run_latency IS 'One row per run (one Method::execute) of every timing session that succeeded, warm-up runs included and marked.';
COMMENT ON COLUMN run_latency.session_id IS 'The session, as its bundle names it; the first 16 digits of the file''s SHA-256 for a loose ETDump.';
COMMENT ON COLUMN run_latency.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN run_latency.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN run_latency.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN run_latency.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN run_latency.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN run_latency.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN run_latency.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN run_latency.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN run_latency.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN run_latency.run_index IS 'Position of the run in its session, from 0.';
COMMENT ON COLUMN run_latency.is_warmup IS 'Whether the run is left out of statistics: the first ones of a session, as many as its sweep says (one for a loose ETDump).';
COMMENT ON COLUMN run_latency.execute_ns IS 'Nanoseconds of Method::execute, end to end.';
COMMENT ON COLUMN run_latency.execute_ms IS 'The same in milliseconds.';
COMMENT ON COLUMN run_latency.etdump_sha256 IS 'SHA-256 of the ETDump that the run was read from.';
COMMENT ON COLUMN run_latency.status IS 'succeeded, failed or invalid.';
COMMENT ON COLUMN run_latency.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
