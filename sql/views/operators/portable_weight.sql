CREATE OR REPLACE VIEW portable_weight AS
WITH
cell_total AS (
    SELECT
        cell_id,
        sweep_id,
        coalesce(sum(time_ms) FILTER (kind = 'portable'), 0) AS portable_ms,
        coalesce(sum(share) FILTER (kind = 'portable'), 0) AS share,
        coalesce(sum(time_ms) FILTER (kind = 'delegated'), 0) AS delegated_ms,
        sum(time_ms) AS execute_ms
    FROM _operator_cell
    GROUP BY cell_id, sweep_id
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
    portable_ms,
    share,
    delegated_ms,
    execute_ms,
    sessions,
    runs,
    runner_source,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM cell_total
JOIN _cell USING (cell_id, sweep_id);

COMMENT ON VIEW portable_weight IS 'How much of Method::execute runs in portable operators: the sums of operator_time.';
COMMENT ON COLUMN portable_weight.portable_ms IS 'Milliseconds in portable operators in one run.';
COMMENT ON COLUMN portable_weight.delegated_ms IS 'Milliseconds in delegated operators in one run.';
COMMENT ON COLUMN portable_weight.execute_ms IS 'Milliseconds of one run, the time of its cell: the sum over all operators and the unattributed time.';
