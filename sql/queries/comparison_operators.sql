-- One row per session of $cells_a and $cells_b, the sides of a comparison: the time of each operator of each module in
-- one run, as in loading/causes_to_judge.sql.
WITH
member AS (
    SELECT session_key, session_id, CASE WHEN cell IN $cells_a THEN 'a' ELSE 'b' END AS arm
    FROM _session
    WHERE cell IN $cells_a OR cell IN $cells_b
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
    FROM member
    JOIN _session_node USING (session_key)
    GROUP BY session_key, operator, category, module_path
)
SELECT
    arm,
    list(operator ORDER BY operator, category, module_path) AS operators,
    list(category ORDER BY operator, category, module_path) AS categories,
    list(module_path ORDER BY operator, category, module_path) AS modules,
    list(calls ORDER BY operator, category, module_path) AS calls,
    list(time_ns ORDER BY operator, category, module_path) AS times_ns,
    list(resolution_ns ORDER BY operator, category, module_path) AS resolutions_ns
FROM member
JOIN session_operator USING (session_key)
GROUP BY arm, session_id
ORDER BY arm, session_id;
