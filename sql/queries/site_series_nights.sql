-- Each night of every series of some devices in some weeks: its verdict, what differed from the last good night, and its
-- sessions as text: id and milliseconds of each, and a dash if the time of the night is not made from it.
WITH
sessions AS (
    SELECT
        series_id,
        device,
        night,
        string_agg(
            session_id || ' ' || round(session_time.execute_ns / typical_runs / 1e6, 6)
                || CASE WHEN is_typical THEN '' ELSE ' -' END,
            ','
            ORDER BY started_at, session_id
        ) AS sessions
    FROM _session
    JOIN session_time USING (session_key)
    WHERE night >= $first AND night < $last AND device IN (SELECT unnest($devices::VARCHAR[])) AND purpose IS NULL
        AND _has_times(emulated)
    GROUP BY series_id, device, night
)
SELECT
    series_id,
    device,
    night,
    series_verdict.cell,
    round(value / 1e6, 6) AS time_ms,
    round(ratio, 6) AS ratio,
    round(low, 6) AS low,
    round(high, 6) AS high,
    verdict,
    invalid_sessions,
    round(noise_floor, 4) AS noise_floor,
    since,
    _changes(before.facts, now.facts) AS changed,
    cause,
    reason,
    content.build,
    content.executorch_version,
    sessions.sessions
FROM series_verdict
LEFT JOIN series_cause USING (series_id, device, night)
LEFT JOIN sessions USING (series_id, device, night)
LEFT JOIN cell AS content ON content.cell = series_verdict.cell
LEFT JOIN _cell_facts AS now ON now.cell = series_verdict.cell
LEFT JOIN _cell_facts AS before ON before.cell = baseline_cell
WHERE night >= $first AND night < $last AND device IN (SELECT unnest($devices::VARCHAR[])) AND metric = 'latency'
ORDER BY series_id, device, night;
