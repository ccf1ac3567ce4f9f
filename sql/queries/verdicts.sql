-- The verdicts on nights, worst first; with $sweep_id, on the series that this sweep measured. Without it, what differs
-- is found only for those that changed: most of a night did not. Those that failed have their kind of failure.
SELECT
    * REPLACE (coalesce(cell, series_id) AS cell),
    baseline_cell AS cell_before
FROM (
    FROM _shown_verdict
    WHERE _is_one_of(night, $nights::DATE[]) AND (verdict != 'no change' OR $sweep_id IS NOT NULL)
    UNION ALL BY NAME
    SELECT
        * EXCLUDE (comparison, changed, night_before, value_before, cell_before, noise_floor_change)
    FROM _compared_verdict
    JOIN series USING (series_id)
    WHERE _is_one_of(night, $nights::DATE[]) AND verdict = 'no change' AND metric = 'latency' AND $sweep_id IS NULL
)
LEFT JOIN (
    SELECT
        series_id,
        device,
        night,
        'failed' AS verdict,
        mode({ 'kind': reason_code, 'signal': signal }).kind AS failure_kind,
        mode({ 'kind': reason_code, 'signal': signal }).signal AS failure_signal,
        min((SELECT os FROM device WHERE device.device_id = _session.device_id)) AS failure_system
    FROM _session
    WHERE _is_one_of(night, $nights::DATE[]) AND status = 'failed' AND mode = 'timing'
    GROUP BY series_id, device, night
) USING (series_id, device, night, verdict)
WHERE $sweep_id IS NULL
    OR (series_id, device, night) IN (
        SELECT (series_id, device, night) FROM _session WHERE sweep_id = $sweep_id AND mode = 'timing'
    )
ORDER BY place NULLS LAST, model, device, threads, precision <> 'fp32', precision, variant, series_id;
