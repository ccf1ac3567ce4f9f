-- One row per session of the cells that the result of a comparison is about: the time of each operator in one run, as in loading/operators_to_judge.sql.
WITH
member AS (
    SELECT session_key, session_id, arm, executions - warmup_executions AS runs
    FROM _session
    JOIN comparison_result ON cell IN (cell_a, cell_b)
    WHERE _session.comparison = $comparison
        AND status = 'succeeded'
        AND mode = 'timing'
        AND executions > warmup_executions
),
session_operator AS (
    SELECT
        session_key,
        operator,
        category,
        sum(self_ns) / any_value(runs) AS time_ns,
        sum(hidden_ns) / any_value(runs) AS resolution_ns
    FROM member
    JOIN _session_node USING (session_key)
    GROUP BY session_key, operator, category
)
SELECT
    arm,
    list(operator ORDER BY operator, category) AS operators,
    list(category ORDER BY operator, category) AS categories,
    list(time_ns ORDER BY operator, category) AS times_ns,
    list(resolution_ns ORDER BY operator, category) AS resolutions_ns
FROM member
JOIN session_operator USING (session_key)
GROUP BY arm, session_id
ORDER BY arm, session_id;
