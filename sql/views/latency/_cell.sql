-- Reads: cell, cell_time
-- Cells that count as latency of a model, with the sessions and runs that enter statistics, and their time: the mean of
-- the runs in the middle half of the sessions in the middle half.
CREATE OR REPLACE VIEW _cell AS
SELECT
    cell.*,
    cell_time.* EXCLUDE (cell_id),
    -- Measured runs behind the row, without warm-up.
    sessions * (executions - warmup_executions) AS runs,
    -- Time of the cell in milliseconds: the mean of the middle half of its sessions, each the mean of the middle half
    -- of its runs.
    execute_ns / typical_runs / 1e6 AS cell_ms
FROM cell
JOIN cell_time USING (cell_id)
WHERE purpose IS NULL AND NOT _is_roof(model);
