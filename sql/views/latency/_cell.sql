CREATE OR REPLACE VIEW _cell AS
WITH
counted AS (
    SELECT
        cell_id,
        sweep_id,
        count(*) AS sessions,
        sum(executions - warmup_executions)::BIGINT AS runs
    FROM session_cell
    JOIN session USING (session_key)
    WHERE status = 'succeeded' AND mode = 'timing' AND executions > warmup_executions AND purpose IS NULL
    GROUP BY cell_id, sweep_id
)
SELECT
    cell.*,
    sessions,
    runs
FROM cell
JOIN counted USING (cell_id, sweep_id);

COMMENT ON VIEW _cell IS 'Cells that count as latency, with the sessions and runs that enter statistics. Private: may change with any version.';
