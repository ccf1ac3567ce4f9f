-- Each night of every series of some devices, the newest first, and what differed from the last good night.
SELECT
    series_id,
    series_verdict.device,
    series_verdict.night,
    series_verdict.cell,
    value / 1e6 AS time_ms,
    ratio,
    low,
    high,
    verdict,
    sessions,
    invalid_sessions,
    noise_floor,
    since,
    baseline_to,
    _changes(before.facts, now.facts) AS changed,
    cause,
    reason,
    content.build,
    content.executorch_version
FROM series_verdict
LEFT JOIN series_cause USING (series_id, device, night)
LEFT JOIN cell AS content ON content.cell = series_verdict.cell
LEFT JOIN _cell_facts AS now ON now.cell = series_verdict.cell
LEFT JOIN _cell_facts AS before ON before.cell = baseline_cell
WHERE series_verdict.device IN (SELECT unnest($devices::VARCHAR[])) AND metric = 'latency'
ORDER BY series_id, device, night DESC;
