-- Reads: _timing_session, session_summary, session_time, session_statistic, cell_output
-- Every timing session that succeeded: the unit of statistics. Warm-up runs are excluded from every number. The columns
-- from settled_after_runs to is_bimodal need 10 measured runs; they are NULL below.
CREATE OR REPLACE VIEW session_latency AS
SELECT
    COLUMNS(_cell_name()),
    session_id,
    -- The time of the session in milliseconds: the mean of the middle half of its measured runs by duration, so that
    -- its parts (operators, categories, modules) add up to it and a slow run is left out.
    session_time.execute_ns / typical_runs / 1e6 AS time_ms,
    -- Measured runs; every statistic is NULL if there are none.
    runs,
    -- Warm-up runs, which are excluded.
    warmup_runs,
    -- Median of its measured runs, in milliseconds.
    median_ms,
    -- Median absolute deviation, median(|x - median|), in milliseconds; not scaled by 1.4826.
    mad_ms,
    -- Mean of its measured runs, in milliseconds: one slow run moves it, which is why no verdict uses it.
    mean_ms,
    -- Sample standard deviation of its measured runs, in milliseconds; NULL below 2 runs.
    sd_ms,
    -- Coefficient of variation: sample standard deviation over mean; NULL below 2 runs.
    sd_ms / nullif(mean_ms, 0) AS cv,
    -- Interquartile range in milliseconds, interpolated.
    (quantiles_ns[2] - quantiles_ns[1]) / 1e6 AS iqr_ms,
    -- Fastest run in milliseconds.
    min_ms,
    -- 90th percentile in milliseconds, interpolated.
    quantiles_ns[3] / 1e6 AS p90_ms,
    -- 95th percentile in milliseconds, interpolated.
    quantiles_ns[4] / 1e6 AS p95_ms,
    -- 99th percentile in milliseconds, interpolated; NULL below 100 runs, which are too few for it.
    CASE WHEN runs >= 100 THEN quantiles_ns[5] / 1e6 END AS p99_ms,
    -- Slowest run in milliseconds.
    max_ms,
    -- Whether the session is one of the middle half of its cell by time: the time of a cell is the mean of these.
    is_typical,
    -- Runs of that middle half.
    typical_runs,
    -- Accuracy of its cell: accurate, inaccurate (its times never count as faster), not judged or not compared, see
    -- cell_accuracy.
    accuracy,
    -- Measured runs at the start that look like further warm-up, up to a fifth of them; 0 if there are none. They stay
    -- in every number.
    settled_after_runs,
    -- Change of the latency over the session as a share of the median: Theil-Sen slope times runs. 0.06 is 6 % slower
    -- at the end.
    drift_share,
    quartile_ratio,
    -- Whether the session got slower, as when a device heats up: quartile_ratio is above 1.05, and drift_share is more
    -- than steady runs with this scatter show by chance in 1 of 100 sessions.
    quartile_ratio > 1.05
    -- By chance the slope of steady runs is that large in fewer than 1 of 100 sessions.
    AND drift_share > 2.5 * 1.4826 * mad_ms / median_ms * sqrt(12 / runs) AS has_drift,
    -- Measured runs with a modified z-score above 5, to either side. They stay in every number.
    outlier_runs,
    -- Whether the measured runs have two modes at least 1 % apart: the time of a session then depends on which mode had
    -- more runs.
    is_bimodal,
    -- Share of Method::execute that no operator accounts for, 0 to 1.
    unattributed_ns / nullif(session_time.execute_ns, 0) AS unattributed_share,
    -- Milliseconds to load the model; NULL if the runner does not report it.
    load_ns / 1e6 AS load_ms,
    -- Milliseconds to load the model at the first of two starts, which writes a cache on disk; load_ms is that of the
    -- second one. NULL without such a cache.
    first_load_ns / 1e6 AS first_load_ms,
    cache_bytes,
    model_peak_memory_bytes,
    start_anonymous_bytes,
    start_file_bytes,
    load_anonymous_bytes,
    load_file_bytes,
    load_swapped_bytes,
    model_anonymous_bytes,
    model_file_bytes,
    model_swapped_bytes,
    end_anonymous_bytes,
    end_file_bytes,
    end_swapped_bytes,
    mappings,
    first_peak_memory_bytes,
    peak_memory_bytes,
    -- What recording the ETDump adds to a run, as a share: 0.28 is 28 %. Measured at the end of one session of each
    -- cell, after loading again; NULL for all others.
    traced_ns / nullif(untraced_ns, 0) - 1 AS tracing_cost,
    threads_used,
    repetition,
    started_at,
    series_id,
    runner_source,
    COLUMNS(_cell_content())
FROM _timing_session
JOIN session_summary USING (session_key)
-- LATERAL, here and in other views: a plain LEFT JOIN reads all of the table, whatever the view is filtered by.
LEFT JOIN
    LATERAL (
        SELECT * EXCLUDE (session_key) FROM session_time AS timed WHERE timed.session_key = _timing_session.session_key
    ) AS session_time
    ON TRUE
LEFT JOIN
    LATERAL (
        SELECT * EXCLUDE (session_key)
        FROM session_statistic AS computed
        WHERE computed.session_key = _timing_session.session_key
    )
    ON TRUE
LEFT JOIN
    LATERAL (
        SELECT _accuracy(compared_sessions, judged_sessions, inaccurate_sessions) AS accuracy
        FROM cell_output
        WHERE cell_output.cell_id = _timing_session.cell_id
    )
    ON TRUE;
