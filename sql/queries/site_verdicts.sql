-- The verdicts on nights, worst first. What differs is found only for those that changed: most of a night did not.
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
    WHERE _is_one_of(night, $nights::DATE[]) AND verdict != 'no change'
    UNION ALL
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
        value / nullif(ratio, 0) AS baseline_value,
        value,
        ratio,
        low,
        high,
        sessions,
        noise_floor,
        baseline_nights,
        since,
        NULL::VARCHAR AS changed,
        reason,
        NULL::VARCHAR AS cause,
        night,
        baseline_to,
        series_id,
        NULL AS place
    FROM series_verdict
    JOIN series USING (series_id)
    WHERE _is_one_of(night, $nights::DATE[]) AND verdict = 'no change' AND metric = 'latency'
)
ORDER BY place NULLS LAST, model, device, threads, precision <> 'fp32', precision, variant, series_id;
