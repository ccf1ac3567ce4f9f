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
),
flag AS (
    SELECT
        session_id,
        CASE WHEN settled_after_runs > 0 THEN format('slow start ({} runs)', settled_after_runs) END AS slow_start,
        CASE WHEN has_drift THEN format('drift {:+.0f} %', 100 * (quartile_ratio - 1)) END AS drift,
        CASE WHEN is_bimodal THEN 'two modes' END AS modes,
        CASE WHEN outlier_runs > 0 THEN outlier_runs || if(outlier_runs = 1, ' outlier', ' outliers') END AS outliers
    FROM session_latency
    WHERE sweep_id = $sweep_id AND _has_times(emulated)
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
    nullif(concat_ws(', ', slow_start, drift, modes, outliers), '') AS flags
FROM session_overview AS session
LEFT JOIN session_latency USING (session_id)
LEFT JOIN flag USING (session_id)
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
