-- Sum up these nights again, from sessions: executions of one process are not independent of each other.
INSERT INTO series_night BY NAME
WITH
measured AS (
    SELECT
        series_id,
        night,
        session_key,
        any_value(pte_sha256) AS pte_sha256,
        any_value(runner.executorch_version) AS executorch_version,
        any_value(runner_sha256) AS runner_sha256,
        median(execute_ns) AS median_ns
    FROM _timing_session
    JOIN run USING (session_key)
    JOIN model USING (model_id)
    LEFT JOIN runner USING (runner_id)
    WHERE (series_id, night) IN (SELECT (series_id, night) FROM touched) AND NOT is_warmup
    GROUP BY series_id, night, session_key
)
SELECT
    series_id,
    night,
    count(*) AS sessions,
    median(median_ns) AS median_ns,
    mad(median_ns) AS mad_ns,
    min(median_ns) AS min_ns,
    max(median_ns) AS max_ns,
    CASE WHEN count(DISTINCT pte_sha256) = 1 THEN any_value(pte_sha256) END AS pte_sha256,
    CASE WHEN count(DISTINCT executorch_version) = 1 THEN any_value(executorch_version) END AS executorch_version,
    CASE WHEN count(DISTINCT runner_sha256) = 1 THEN any_value(runner_sha256) END AS runner_sha256
FROM measured
GROUP BY series_id, night;
