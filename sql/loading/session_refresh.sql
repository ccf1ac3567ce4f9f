-- Sums over the runs and events of new sessions, whose rows are in `new_run` and `new_event`. This is the one rule
-- about the time of a session: the mean of the middle half of its measured runs by duration. Each part of it is the
-- mean of the same runs, so that parts add up and one slow run of ten is left out.
INSERT INTO typical_run BY NAME
SELECT run_id, session_key
FROM new_run
WHERE NOT is_warmup
QUALIFY _in_middle_half(
        row_number() OVER (PARTITION BY session_key ORDER BY execute_ns, run_index),
        count(*) OVER (PARTITION BY session_key)
    );

INSERT INTO run_summary BY NAME
WITH
leaf AS (
    SELECT
        run_id,
        coalesce(sum(self_ns) FILTER (kind = 'delegated'), 0) AS delegated_ns,
        coalesce(sum(self_ns) FILTER (kind = 'portable'), 0) AS portable_ns,
        coalesce(sum(self_ns) FILTER (kind = 'other'), 0) AS other_ns
    FROM new_event
    JOIN node USING (node_id)
    GROUP BY run_id
)
SELECT
    run_id,
    session_key,
    delegated_ns,
    portable_ns,
    other_ns,
    execute_ns - delegated_ns - portable_ns - other_ns AS unattributed_ns
FROM new_run
JOIN leaf USING (run_id);

INSERT INTO session_node BY NAME
SELECT session_key, node_id, count(*) AS calls, sum(self_ns) AS self_ns
FROM new_event
JOIN typical_run USING (run_id)
WHERE session_key IN (SELECT session_key FROM new_run)
GROUP BY session_key, node_id;

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
WHERE status = 'succeeded' AND mode = 'timing' AND session_key IN (SELECT session_key FROM new_run)
GROUP BY session_key;
