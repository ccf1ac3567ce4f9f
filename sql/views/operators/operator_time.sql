CREATE OR REPLACE VIEW operator_time AS
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
    calls_per_run,
    time_ms,
    share,
    layout,
    data_type,
    microkernel,
    sessions,
    runs,
    runner_source,
    resolution_ms,
    time_ms < resolution_ms AS below_resolution,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM _operator_cell
JOIN _cell USING (cell_id, sweep_id);

COMMENT ON VIEW operator_time IS 'Where the time of Method::execute goes, by operator, layout, data types and kernel. A time is the median over the sessions of a cell of the mean over the runs of a session; the shares of a cell add up to 1.';
