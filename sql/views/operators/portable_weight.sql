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

COMMENT ON VIEW portable_weight IS 'How much of Method::execute runs in portable operators, in all measured runs of a cell.';
COMMENT ON COLUMN portable_weight.portable_ms IS 'Milliseconds per run in portable operators, on average.';
COMMENT ON COLUMN portable_weight.share IS 'Portable part of Method::execute, 0 to 1.';
COMMENT ON COLUMN portable_weight.delegated_ms IS 'Milliseconds per run in delegated operators, on average.';
COMMENT ON COLUMN portable_weight.execute_ms IS 'Milliseconds of Method::execute per run, on average.';
