-- Reads: session_cell, session, session_time, cell
-- Cells that count as latency, with the sessions and runs that enter statistics, and their time: the mean of the runs
-- in the middle half of the sessions in the middle half.
CREATE OR REPLACE VIEW _cell AS
WITH
counted AS (
    SELECT
        cell_id,
        sweep_id,
        count(*) AS sessions,
        sum(executions - warmup_executions)::BIGINT AS runs,
        sum(execute_ns) FILTER (is_typical) / sum(typical_runs) FILTER (is_typical) / 1e6 AS cell_ms
    FROM session_cell
    JOIN session USING (session_key)
    JOIN session_time USING (session_key)
    WHERE purpose IS NULL
    GROUP BY cell_id, sweep_id
)
SELECT
    cell.*,
    -- Sessions behind the row.
    sessions,
    -- Measured runs behind the row, without warm-up.
    runs,
    -- Time of the cell in milliseconds: the mean of the middle half of its sessions, each the mean of the middle half
    -- of its runs.
    cell_ms
FROM cell
JOIN counted USING (cell_id, sweep_id);
