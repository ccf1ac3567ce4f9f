-- Reads: _operator_cell, _cell
-- How much of Method::execute runs in portable operators: the sums of operator_time.
CREATE OR REPLACE VIEW portable_weight AS
WITH
cell_total AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        coalesce(sum(time_ms) FILTER (kind = 'portable'), 0) AS portable_ms,
        coalesce(sum(share) FILTER (kind = 'portable'), 0) AS share,
        coalesce(sum(time_ms) FILTER (kind = 'delegated'), 0) AS delegated_ms,
        sum(time_ms) AS execute_ms
    FROM _operator_cell
    GROUP BY cell_id, cell, sweep_id
)
SELECT
    COLUMNS(_cell_name()),
    -- Milliseconds in portable operators in one run.
    portable_ms,
    share,
    -- Milliseconds in delegated operators in one run.
    delegated_ms,
    -- Milliseconds of one run, the time of its cell: the sum over all operators and the unattributed time.
    execute_ms,
    sessions,
    runs,
    runner_source,
    COLUMNS(_cell_content())
FROM cell_total
JOIN _cell USING (cell_id, cell, sweep_id);
