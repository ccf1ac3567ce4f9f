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
    runner_source,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM run
JOIN _timing_session USING (session_key);

COMMENT ON VIEW run_latency IS 'Every run (one Method::execute) of every timing session that succeeded, warm-up runs included and marked.';
COMMENT ON COLUMN run_latency.run_index IS 'Position of the run in its session, from 0.';
COMMENT ON COLUMN run_latency.is_warmup IS 'Whether the run is excluded from statistics: one of the first runs of its session, as many as its sweep sets (one for a loose ETDump).';
COMMENT ON COLUMN run_latency.execute_ns IS 'Nanoseconds of Method::execute, end to end.';
COMMENT ON COLUMN run_latency.execute_ms IS 'Milliseconds of Method::execute, end to end.';
