-- The time of each cell and of each node in it, so that a view reads a row and not all sessions.
CREATE TABLE cell_time (
    cell_id INTEGER NOT NULL,
    -- Sessions that enter statistics.
    sessions BIGINT NOT NULL,
    -- Runs that the time is the mean of: the typical runs of the typical sessions.
    typical_runs BIGINT NOT NULL,
    -- Nanoseconds of Method::execute, over these runs.
    execute_ns HUGEINT NOT NULL,
    -- The configuration that says where its operators come from, see session; NULL if none does.
    source_map_id INTEGER
);

-- The time of each node in the time of a cell.
CREATE TABLE cell_node (
    cell_id INTEGER NOT NULL,
    node_id INTEGER NOT NULL,
    -- Calls over the typical runs of the typical sessions.
    calls BIGINT NOT NULL,
    -- Nanoseconds over these runs, without children.
    self_ns HUGEINT NOT NULL
);

-- What the runs of a session sum up to: one row per timing session that succeeded and has runs.
CREATE TABLE session_summary (
    session_key INTEGER NOT NULL,
    -- Measured runs.
    runs BIGINT NOT NULL,
    -- Warm-up runs, which are excluded from all that follows.
    warmup_runs BIGINT NOT NULL,
    -- Median of the measured runs, in milliseconds; NULL without any, as all that follows.
    median_ms DOUBLE,
    -- Median absolute deviation in milliseconds, not scaled.
    mad_ms DOUBLE,
    -- Mean in milliseconds.
    mean_ms DOUBLE,
    -- Sample standard deviation in milliseconds; NULL below 2 runs.
    sd_ms DOUBLE,
    -- Fastest run in milliseconds.
    min_ms DOUBLE,
    -- Slowest run in milliseconds.
    max_ms DOUBLE,
    -- The 25th, 75th, 90th, 95th and 99th percentile in nanoseconds, interpolated.
    quantiles_ns DOUBLE[],
    -- Nanoseconds of Method::execute in no operator, over the typical runs.
    unattributed_ns HUGEINT
);
INSERT INTO session_summary BY NAME
SELECT
    session_key,
    count(*) FILTER (NOT is_warmup) AS runs,
    count(*) FILTER (is_warmup) AS warmup_runs,
    median(execute_ns) FILTER (NOT is_warmup) / 1e6 AS median_ms,
    mad(execute_ns) FILTER (NOT is_warmup) / 1e6 AS mad_ms,
    avg(execute_ns) FILTER (NOT is_warmup) / 1e6 AS mean_ms,
    stddev_samp(execute_ns) FILTER (NOT is_warmup) / 1e6 AS sd_ms,
    min(execute_ns) FILTER (NOT is_warmup) / 1e6 AS min_ms,
    max(execute_ns) FILTER (NOT is_warmup) / 1e6 AS max_ms,
    quantile_cont(execute_ns, [0.25, 0.75, 0.9, 0.95, 0.99]) FILTER (NOT is_warmup) AS quantiles_ns,
    sum(unattributed_ns) FILTER (typical_run.run_id IS NOT NULL) AS unattributed_ns
FROM run
JOIN run_summary USING (session_key, run_id)
LEFT JOIN typical_run USING (session_key, run_id)
JOIN session USING (session_key)
WHERE status = 'succeeded' AND mode = 'timing'
GROUP BY session_key;
