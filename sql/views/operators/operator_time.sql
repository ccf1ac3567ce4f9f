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

COMMENT ON VIEW operator_time IS 'Where the time of Method::execute goes, by operator, layout, data types and kernel. Times are means of the same runs as the time of the cell (see session_latency), so that they add up to it; their shares add up to 1.';
