-- The verdicts on nights, worst first; with $sweep_id, on the series that this sweep measured. Without it, what differs
-- is found only for those that changed: most of a night did not.
SELECT * EXCLUDE (place)
FROM (
    SELECT
        model,
        device,
        NULL::VARCHAR AS without_times,
        precision,
        threads,
        NULL::VARCHAR AS differs,
        coalesce(cell, series_id) AS cell,
        variant,
        metric,
        verdict,
        baseline_value,
        value,
        ratio,
        low,
        high,
        sessions,
        noise_floor,
        baseline_nights,
        since,
        changed,
        reason,
        cause,
        night,
        baseline_to,
        series_id,
        place
    FROM _shown_verdict
    WHERE _is_one_of(night, $nights::DATE[]) AND (verdict != 'no change' OR $sweep_id IS NOT NULL)
    UNION ALL BY NAME
    SELECT
        model,
        device,
        precision,
        threads,
        coalesce(cell, series_id) AS cell,
        variant,
        metric,
        verdict,
        value / nullif(ratio, 0) AS baseline_value,
        value,
        ratio,
        low,
        high,
        sessions,
        noise_floor,
        baseline_nights,
        since,
        reason,
        night,
        baseline_to,
        series_id
    FROM series_verdict
    JOIN series USING (series_id)
    WHERE _is_one_of(night, $nights::DATE[]) AND verdict = 'no change' AND metric = 'latency' AND $sweep_id IS NULL
)
WHERE $sweep_id IS NULL
    OR (series_id, device, night) IN (
        SELECT (series_id, device, night) FROM _session WHERE sweep_id = $sweep_id AND mode = 'timing'
    )
ORDER BY place NULLS LAST, model, device, threads, precision <> 'fp32', precision, variant, series_id;
