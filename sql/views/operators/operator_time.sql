-- Reads: _operator_cell, _cell
-- Where the time of Method::execute goes, by operator, layout, data types and kernel. Times are means of the same runs
-- as the time of the cell (see session_latency), so that they add up to it; their shares add up to 1.
CREATE OR REPLACE VIEW operator_time AS
SELECT
    COLUMNS(_cell_name()),
    operator,
    layout,
    data_type,
    microkernel,
    kind,
    category,
    time_ms,
    share,
    calls_per_run,
    resolution_ms,
    -- Whether time_ms is less than resolution_ms: ignore it then.
    time_ms < resolution_ms AS below_resolution,
    sessions,
    runs,
    runner_source,
    COLUMNS(_cell_content())
FROM _operator_cell
JOIN _cell USING (cell_id, cell, sweep_id);
