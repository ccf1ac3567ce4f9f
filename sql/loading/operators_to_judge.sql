-- The time of each operator in one run of each session, of the nights whose operators are judged and of those that they
-- are compared with. `pair_id` stands for a series on a device, `session` for the place of a session in its night,
-- `operator_id` for a name in `operator_name`.
WITH
needed AS (
    SELECT pair_id, series_id, night, cell
    FROM operator_night
    -- Those from the baseline of a judged night on: a change may stay suspected for any number of nights.
    QUALIFY min(CASE WHEN is_judged THEN baseline_from END) OVER (
            PARTITION BY pair_id ORDER BY night ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING
        ) <= night
),
member AS (
    SELECT
        pair_id,
        needed.night,
        session_key,
        typical_runs,
        row_number() OVER (PARTITION BY pair_id, needed.night ORDER BY session_id) AS session
    FROM needed
    JOIN _session USING (series_id, cell)
    JOIN session_time USING (session_key)
)
SELECT
    pair_id,
    night,
    session,
    operator_id,
    sum(self_ns) / any_value(typical_runs) AS time_ns,
    coalesce(sum(calls) FILTER (kind = 'delegated'), 0)
    / any_value(typical_runs)
    * 1e6
    * _delegate_clock_ms() AS resolution_ns
FROM member
JOIN session_node USING (session_key)
JOIN operator_name USING (node_id)
GROUP BY pair_id, night, session, operator_id;
