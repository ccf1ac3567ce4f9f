CREATE OR REPLACE VIEW session_latency AS
WITH
latency AS (
    SELECT
        session_key,
        count(*) FILTER (NOT is_warmup) AS runs,
        count(*) FILTER (is_warmup) AS warmup_runs,
        median(execute_ns) FILTER (NOT is_warmup) / 1e6 AS median_ms,
        mad(execute_ns) FILTER (NOT is_warmup) / 1e6 AS mad_ms,
        quantile_cont(execute_ns, [0.25, 0.75, 0.9, 0.95, 0.99]) FILTER (NOT is_warmup) AS quantiles_ns,
        min(execute_ns) FILTER (NOT is_warmup) / 1e6 AS min_ms,
        max(execute_ns) FILTER (NOT is_warmup) / 1e6 AS max_ms,
        stddev_samp(execute_ns) FILTER (NOT is_warmup) / avg(execute_ns) FILTER (NOT is_warmup) AS cv,
        sum(unattributed_ns) FILTER (NOT is_warmup) / sum(execute_ns) FILTER (NOT is_warmup) AS unattributed_share
    FROM run
    JOIN run_summary USING (session_key, run_id)
    GROUP BY session_key
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
    series_id
FROM latency
JOIN _session USING (session_key)
WHERE status = 'succeeded' AND mode = 'timing';

COMMENT ON VIEW session_latency IS 'One row per timing session that succeeded: the unit of statistics. Warm-up runs are left out of every number.';
COMMENT ON COLUMN session_latency.session_id IS 'The session, as its bundle names it; the first 16 digits of the file''s SHA-256 for a loose ETDump.';
COMMENT ON COLUMN session_latency.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN session_latency.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN session_latency.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_latency.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN session_latency.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN session_latency.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_latency.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_latency.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN session_latency.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN session_latency.runs IS 'Measured runs; 0 leaves every statistic NULL.';
COMMENT ON COLUMN session_latency.warmup_runs IS 'First runs that were left out.';
COMMENT ON COLUMN session_latency.median_ms IS 'Median latency in milliseconds.';
COMMENT ON COLUMN session_latency.mad_ms IS 'Median of the runs'' distances from their median, median(|x - median|), in milliseconds; not scaled by 1.4826.';
COMMENT ON COLUMN session_latency.iqr_ms IS 'Distance of the quartiles in milliseconds, interpolated.';
COMMENT ON COLUMN session_latency.p90_ms IS '90th percentile in milliseconds, interpolated.';
COMMENT ON COLUMN session_latency.p95_ms IS '95th percentile in milliseconds, interpolated.';
COMMENT ON COLUMN session_latency.p99_ms IS '99th percentile in milliseconds, interpolated; NULL below 100 runs, which cannot tell it.';
COMMENT ON COLUMN session_latency.min_ms IS 'Fastest run in milliseconds.';
COMMENT ON COLUMN session_latency.max_ms IS 'Slowest run in milliseconds.';
COMMENT ON COLUMN session_latency.cv IS 'Coefficient of variation: sample standard deviation over mean; NULL below 2 runs.';
COMMENT ON COLUMN session_latency.unattributed_share IS 'Share of Method::execute that no operator accounts for, 0 to 1; slightly below 0 where a delegate reports more than its call took.';
COMMENT ON COLUMN session_latency.load_ms IS 'Milliseconds to load the model, by the runner; NULL if the runner does not say.';
COMMENT ON COLUMN session_latency.peak_resident_bytes IS 'Peak resident memory of the runner; NULL if it does not say.';
COMMENT ON COLUMN session_latency.threads_used IS 'Threads that the runner really used; NULL if it does not say.';
COMMENT ON COLUMN session_latency.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
COMMENT ON COLUMN session_latency.session_index IS 'Place of the session among its like in the sweep, from 0.';
COMMENT ON COLUMN session_latency.started_at IS 'Start of the session, UTC.';
COMMENT ON COLUMN session_latency.series_id IS 'What the session may be compared with over nights; see series_latency.';
