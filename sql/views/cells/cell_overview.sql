-- Reads: session_cell, session, cell, cell_time, _differs
-- What is measured alike: each cell with everything that its sessions have in common. Only sessions of one cell are
-- pooled.
CREATE OR REPLACE VIEW cell_overview AS
WITH
counted AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        count(*) AS sessions,
        count(*) FILTER (status = 'succeeded') AS succeeded,
        min(started_at) AS started_at,
        max(ended_at) AS ended_at
    FROM cell
    JOIN session_cell USING (cell_id)
    JOIN session USING (session_key, sweep_id)
    GROUP BY cell_id, cell, sweep_id
)
SELECT
    COLUMNS(_cell_name()),
    -- Time of the cell in milliseconds: the mean of the middle half of its sessions; NULL if none counts as latency.
    -- All its parts add up to it (docs/numbers.md).
    cell_ms AS time_ms,
    -- Sessions of the cell, however they ended.
    sessions,
    -- Sessions that succeeded.
    succeeded,
    -- What distinguishes the cell from others of the same name (sweep, device, model, precision, variant, mode,
    -- threads): a list of {fact, value}, such as executions and 3; value is NULL if it is unknown. NULL if there are no
    -- others.
    differs,
    started_at,
    ended_at,
    executions,
    warmup_executions,
    purpose,
    comparison,
    arm,
    method,
    seed,
    os_version,
    platform,
    device_model,
    soc,
    sme2,
    executorch_version,
    cell,
    pair,
    pte_sha256,
    inputs_sha256,
    runner_sha256,
    runner_source,
    serial,
    build,
    launcher
FROM counted
JOIN cell USING (cell_id, cell, sweep_id)
LEFT JOIN
    LATERAL (
        SELECT execute_ns / typical_runs / 1e6 AS cell_ms
        FROM cell_time
        WHERE cell_time.cell_id = cell.cell_id AND cell.purpose IS NULL
    ) AS timed
    ON TRUE
LEFT JOIN _differs USING (cell_id, cell, sweep_id);
