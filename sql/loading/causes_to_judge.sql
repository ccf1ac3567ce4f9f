-- One row per session of the nights that the cause of a changed latency is found in: the time of each operator of each
-- module in one run. Where a comparison decided a judged night, also those of its sides: `arm` is a or b.
WITH
needed AS (
    SELECT *
    FROM operator_night
    -- Those from the last good night before a changed one on: a change may stay suspected for any number of nights.
    QUALIFY min(CASE WHEN is_judged AND is_changed THEN least(baseline_to, since) END) OVER (
            PARTITION BY series_id, device ORDER BY night ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) <= night
),
measured AS NOT MATERIALIZED (
    SELECT
        session_key,
        session_id,
        series_id,
        cell,
        arm,
        comparison,
        _content(pte_sha256, inputs_sha256, runner_sha256, launcher, executions, warmup_executions) AS content
    FROM _session
),
member AS (
    SELECT needed.*, session_key, session_id, content, NULL AS arm
    FROM needed
    JOIN measured USING (series_id, cell)
    UNION ALL BY NAME
    SELECT needed.*, session_key, session_id, content, measured.arm
    FROM needed
    JOIN comparison_result USING (comparison)
    JOIN measured USING (comparison)
    WHERE is_judged AND is_changed AND measured.cell IN (cell_a, cell_b)
),
session_operator AS (
    SELECT
        session_key,
        operator,
        category,
        module_path,
        sum(calls_per_run) AS calls,
        sum(time_ns) AS time_ns,
        sum(hidden_ns) AS resolution_ns
    -- Several nights may be decided by the sessions of one comparison.
    FROM (SELECT DISTINCT session_key FROM member)
    JOIN _session_node USING (session_key)
    GROUP BY session_key, operator, category, module_path
)
SELECT
    series_id,
    device,
    night,
    content,
    arm,
    session_id,
    list(operator ORDER BY operator, category, module_path) AS operators,
    list(category ORDER BY operator, category, module_path) AS categories,
    list(module_path ORDER BY operator, category, module_path) AS modules,
    list(calls ORDER BY operator, category, module_path) AS calls,
    list(time_ns ORDER BY operator, category, module_path) AS times_ns,
    list(resolution_ns ORDER BY operator, category, module_path) AS resolutions_ns
FROM member
JOIN session_operator USING (session_key)
GROUP BY series_id, device, night, content, arm, session_id;
