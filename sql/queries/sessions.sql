-- Every session with its outcome, its median, flags of its runs, and the conditions of the device before and after it.
WITH
condition AS (
    SELECT
        session_id,
        any_value(temperature_c) FILTER (moment = 'before') AS temperature_before_c,
        any_value(temperature_c) FILTER (moment = 'after') AS temperature_after_c,
        any_value(battery_percent) FILTER (moment = 'before') AS battery_before_percent,
        any_value(battery_percent) FILTER (moment = 'after') AS battery_after_percent,
        any_value(load_1m) FILTER (moment = 'before') AS load_before_1m,
        any_value(load_1m) FILTER (moment = 'after') AS load_after_1m
    FROM session_conditions
    WHERE sweep_id = $sweep_id
    GROUP BY session_id
)
SELECT
    session.session_id,
    session.model,
    session.precision,
    session.variant,
    session.threads,
    session.mode,
    session.attempt,
    session.device,
    CASE WHEN session.reason_code = 'first_session' THEN 'discarded' ELSE session.status END AS status,
    session.started_at,
    CASE WHEN _has_times(session.emulated) THEN session_latency.time_ms END AS time_ms,
    condition.* EXCLUDE (session_id),
    CASE WHEN _has_times(session.emulated) THEN
            {
                settled_after_runs: settled_after_runs,
                drift: CASE WHEN has_drift THEN quartile_ratio END,
                is_bimodal: is_bimodal,
                outlier_runs: outlier_runs
            }
    END AS flags
FROM session_overview AS session
LEFT JOIN session_latency USING (session_id)
LEFT JOIN condition USING (session_id)
WHERE session.sweep_id = $sweep_id
ORDER BY
    session.device,
    session.mode DESC,
    session.model,
    session.threads,
    session.precision <> 'fp32',
    session.precision,
    session.variant,
    session.started_at, session.session_id;
