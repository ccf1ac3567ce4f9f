-- Each night of every series of some devices in some weeks: its verdict, what differed from the last good night, and
-- its sessions as text: id and milliseconds of each, and a dash if the time of the night is not made from it.
WITH
sessions AS (
    SELECT
        series_id,
        device,
        night,
        -- sorted as a list: an aggregate that sorts takes twice as long
        array_to_string(
            list_transform(
                list_sort(list({
                    'started_at': started_at,
                    'session': session_id || ' ' || round(session_time.execute_ns / typical_runs / 1e6, 6)
                    || CASE WHEN is_typical THEN '' ELSE ' -' END
                })),
                LAMBDA each: each.session
            ),
            ','
        ) AS sessions
    FROM _session
    JOIN session_time USING (session_key)
    WHERE night >= $first AND night < $last AND list_contains($devices::VARCHAR[], device) AND purpose IS NULL
        AND _has_times(emulated)
    GROUP BY series_id, device, night
),
judged AS (
    FROM series_verdict
    WHERE night >= $first AND night < $last AND list_contains($devices::VARCHAR[], device) AND metric = 'latency'
)
SELECT
    series_id,
    device,
    night,
    judged.cell,
    round(value / 1e6, 6) AS time_ms,
    round(ratio, 6) AS ratio,
    round(low, 6) AS low,
    round(high, 6) AS high,
    judged.comparison IS NOT NULL AS is_interleaved,
    verdict,
    invalid_sessions,
    round(noise_floor, 4) AS noise_floor,
    since,
    CASE WHEN verdict NOT IN ('no change', 'insufficient data', 'new') THEN changed END AS changed,
    cause,
    reason,
    content.executorch_version,
    sessions.sessions
FROM judged
LEFT JOIN series_cause USING (series_id, device, night)
LEFT JOIN sessions USING (series_id, device, night)
LEFT JOIN (FROM cell WHERE night >= $first AND night < $last) AS content ON content.cell = judged.cell
ORDER BY series_id, device, night;
