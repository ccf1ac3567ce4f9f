-- The verdicts on the night of a sweep, for each series and device that it measured, worst first.
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
    cause,
    night,
    baseline_to,
    series_id
FROM _shown_verdict AS verdict
JOIN (
    SELECT DISTINCT series_id, device, night
    FROM _session
    WHERE sweep_id = $sweep_id AND mode = 'timing'
) AS measured USING (series_id, device, night)
WHERE night = $night
ORDER BY place;
