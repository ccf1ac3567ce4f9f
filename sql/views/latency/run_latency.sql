-- Reads: run, _timing_session
-- Every run (one Method::execute) of every timing session that succeeded, warm-up runs included and marked.
CREATE OR REPLACE VIEW run_latency AS
SELECT
    COLUMNS(_cell_name()),
    session_id,
    run_index,
    -- Whether the run is excluded from statistics: one of the first runs of its session, as many as its sweep sets (one
    -- for a loose ETDump with several runs).
    is_warmup,
    execute_ns,
    -- Milliseconds of Method::execute, end to end.
    execute_ns / 1e6 AS execute_ms,
    etdump_sha256,
    status,
    runner_source,
    COLUMNS(_cell_content())
FROM run
JOIN _timing_session USING (session_key);
