-- Reads: session_cell, session, cell, _cell, _differs
-- What is measured alike: each cell with everything that its sessions have in common. Only sessions of one cell are
-- pooled.
CREATE OR REPLACE VIEW cell_overview AS
WITH
counted AS (
    SELECT
        cell_id,
        sweep_id,
        count(*) AS sessions,
        count(*) FILTER (status = 'succeeded') AS succeeded,
        min(started_at) AS started_at,
        max(ended_at) AS ended_at
    FROM session_cell
    JOIN session USING (session_key)
    GROUP BY cell_id, sweep_id
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
JOIN cell USING (cell_id, sweep_id)
LEFT JOIN (SELECT cell_id, sweep_id, cell_ms FROM _cell) AS timed USING (cell_id, sweep_id)
LEFT JOIN _differs USING (cell_id, cell, sweep_id);
