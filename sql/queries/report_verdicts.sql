-- The verdicts on the night of a sweep, for each series and device that it measured, worst first: every one on latency,
-- and the changes of other metrics, suspected ones only for the worse. The size of a .pte file is listed once, not for each series that runs it.
WITH
judged AS (
    SELECT *, 'latency' AS metric, time_ms * 1e6 AS value, time_ms * 1e6 / ratio AS baseline_value
    FROM verdict
    UNION ALL BY NAME
    SELECT *
    FROM metric_verdict
    WHERE metric != 'latency'
        AND (
            verdict IN ('regression', 'improvement')
            OR starts_with(verdict, 'device')
            OR (verdict = 'suspected' AND (value > baseline_value) = (metric != 'SME coverage'))
        )
    QUALIFY metric != '.pte size'
        OR row_number() OVER (
            PARTITION BY sweep_id, model, precision, baseline_value, value ORDER BY device, threads, variant
        ) = 1
)
SELECT
    verdict.model,
    verdict.device,
    NULL::VARCHAR AS without_times,
    verdict.precision,
    verdict.threads,
    NULL::VARCHAR AS differs,
    coalesce(verdict.cell, series_id) AS cell,
    verdict.variant,
    metric,
    verdict,
    baseline_value,
    value,
    ratio,
    low,
    high,
    verdict.sessions,
    noise_floor,
    baseline_nights,
    since,
    changed,
    reason,
    cause
FROM judged AS verdict
JOIN (
    SELECT DISTINCT series_id, device, night
    FROM _session
    WHERE sweep_id = $sweep_id AND mode = 'timing'
) AS measured USING (series_id, device, night)
ORDER BY
    list_position(
        [
            'regression', 'inaccurate', 'suspected', 'device slower', 'device worse', 'invalid environment', 'improvement',
            'device faster', 'device better', 'insufficient data', 'no change'
        ],
        verdict
    ),
    metric != 'latency',
    abs(ln(nullif(ratio, 0))) DESC NULLS LAST,
    verdict.model,
    verdict.device,
    verdict.threads,
    verdict.precision <> 'fp32',
    verdict.precision,
    verdict.variant;
