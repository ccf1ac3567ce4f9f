CREATE OR REPLACE VIEW operator_time AS
WITH
operator_total AS (
    SELECT
        cell,
        operator,
        kind,
        category,
        layout,
        data_type,
        microkernel,
        sum(calls) AS calls,
        sum(self_ns) AS self_ns
    FROM _operator_session
    GROUP BY ALL
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
    operator,
    kind,
    category,
    calls / runs AS calls_per_run,
    self_ns / runs / 1e6 AS time_ms,
    self_ns / sum(self_ns) OVER (PARTITION BY cell) AS share,
    layout,
    data_type,
    microkernel,
    sessions,
    runs,
    runner_source
FROM operator_total
JOIN _cell USING (cell);

COMMENT ON VIEW operator_time IS 'Where the time of Method::execute goes, by operator, layout, data types and kernel, in all measured runs of a cell. The shares of a cell add up to 1.';
