CREATE OR REPLACE VIEW session_latency AS
WITH
latency AS (
    SELECT
        session_key,
        sweep_id,
        count(*) FILTER (NOT is_warmup) AS runs,
        count(*) FILTER (is_warmup) AS warmup_runs,
        median(execute_ns) FILTER (NOT is_warmup) / 1e6 AS median_ms,
        mad(execute_ns) FILTER (NOT is_warmup) / 1e6 AS mad_ms,
        quantile_cont(execute_ns, [0.25, 0.75, 0.9, 0.95, 0.99]) FILTER (NOT is_warmup) AS quantiles_ns,
        min(execute_ns) FILTER (NOT is_warmup) / 1e6 AS min_ms,
        max(execute_ns) FILTER (NOT is_warmup) / 1e6 AS max_ms,
        stddev_samp(execute_ns) FILTER (NOT is_warmup) / nullif(avg(execute_ns) FILTER (NOT is_warmup), 0) AS cv,
        sum(unattributed_ns) FILTER (NOT is_warmup) / nullif(sum(execute_ns) FILTER (NOT is_warmup), 0) AS unattributed_share
    FROM run
    JOIN run_summary USING (session_key, run_id)
    JOIN session USING (session_key)
    GROUP BY session_key, sweep_id
)
SELECT
    session_id,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    runs,
    warmup_runs,
    median_ms,
    mad_ms,
    (quantiles_ns[2] - quantiles_ns[1]) / 1e6 AS iqr_ms,
    quantiles_ns[3] / 1e6 AS p90_ms,
    quantiles_ns[4] / 1e6 AS p95_ms,
    CASE WHEN runs >= 100 THEN quantiles_ns[5] / 1e6 END AS p99_ms,
    min_ms,
    max_ms,
    cv,
    unattributed_share,
    load_ns / 1e6 AS load_ms,
    peak_resident_bytes,
    threads_used,
    runner_source,
    slot AS session_index,
    started_at,
    series_id,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM latency
JOIN _timing_session USING (session_key, sweep_id);

COMMENT ON VIEW session_latency IS 'Every timing session that succeeded: the unit of statistics. Warm-up runs are excluded from every number.';
COMMENT ON COLUMN session_latency.runs IS 'Measured runs; every statistic is NULL if there are none.';
COMMENT ON COLUMN session_latency.warmup_runs IS 'Warm-up runs, which are excluded.';
COMMENT ON COLUMN session_latency.median_ms IS 'Median latency in milliseconds.';
COMMENT ON COLUMN session_latency.mad_ms IS 'Median absolute deviation, median(|x - median|), in milliseconds; not scaled by 1.4826.';
COMMENT ON COLUMN session_latency.iqr_ms IS 'Interquartile range in milliseconds, interpolated.';
COMMENT ON COLUMN session_latency.p90_ms IS '90th percentile in milliseconds, interpolated.';
COMMENT ON COLUMN session_latency.p95_ms IS '95th percentile in milliseconds, interpolated.';
COMMENT ON COLUMN session_latency.p99_ms IS '99th percentile in milliseconds, interpolated; NULL below 100 runs, which are too few for it.';
COMMENT ON COLUMN session_latency.min_ms IS 'Fastest run in milliseconds.';
COMMENT ON COLUMN session_latency.max_ms IS 'Slowest run in milliseconds.';
COMMENT ON COLUMN session_latency.cv IS 'Coefficient of variation: sample standard deviation over mean; NULL below 2 runs.';
COMMENT ON COLUMN session_latency.unattributed_share IS 'Share of Method::execute that no operator accounts for, 0 to 1; slightly below 0 if a delegate reports more than its call took.';
COMMENT ON COLUMN session_latency.load_ms IS 'Milliseconds to load the model; NULL if the runner does not report it.';
