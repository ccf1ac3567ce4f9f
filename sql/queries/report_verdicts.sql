-- The verdicts on the night of a sweep, for each series and device that it measured, worst first.
SELECT
    verdict.model,
    verdict.device,
    FALSE AS emulated,
    verdict.precision,
    verdict.threads,
    NULL::VARCHAR AS differs,
    coalesce(verdict.cell, series_id) AS cell,
    verdict.variant,
    verdict,
    ratio,
    low,
    high,
    noise_floor,
    baseline_nights,
    baseline_to,
    since,
    changed,
    reason
FROM verdict
JOIN (
    SELECT DISTINCT series_id, device, night
    FROM _session
    WHERE sweep_id = $sweep_id AND mode = 'timing'
) AS measured USING (series_id, device, night)
ORDER BY
    list_position(
        ['regression', 'suspected', 'invalid environment', 'improvement', 'insufficient data', 'no change'], verdict
    ),
    abs(ln(ratio)) DESC NULLS LAST,
    verdict.model,
    verdict.device,
    verdict.threads,
    verdict.precision <> 'fp32',
    verdict.precision,
    verdict.variant;
