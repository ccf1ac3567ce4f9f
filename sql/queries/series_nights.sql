-- Each night of every series of some devices in some weeks: its verdict, what differed from the last good night, and
-- its sessions as text: id and milliseconds of each, and a dash if the time of the night is not made from it. `figures`
-- are the other judged metrics, and `made_of` is what the cell consists of.
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
        ) AS sessions,
        max(tokens) AS tokens
    FROM _session
    JOIN session_time USING (session_key)
    LEFT JOIN (SELECT model_id, tokens FROM model) USING (model_id)
    WHERE night >= $first AND night < $last AND list_contains($devices::VARCHAR[], device) AND purpose IS NULL
        AND _has_times(emulated)
    GROUP BY series_id, device, night
),
failures AS (
    SELECT
        series_id,
        device,
        night,
        list_slice(list_sort(list(session_id || ' ' || coalesce(reason_code, 'unknown'))), 1, 3) AS failed_sessions
    FROM _session
    WHERE night >= $first AND night < $last AND list_contains($devices::VARCHAR[], device) AND purpose IS NULL
        AND status <> 'succeeded' AND reason_code IS DISTINCT FROM 'first_session'
    GROUP BY series_id, device, night
),
verdicts AS MATERIALIZED (
    FROM series_verdict
    WHERE night >= $first AND night < $last AND list_contains($devices::VARCHAR[], device)
),
figures AS (
    SELECT
        series_id,
        device,
        night,
        list_sort(list([
            metric,
            printf('%.6g', value),
            printf('%.6g', baseline_value),
            printf('%.4f', low),
            printf('%.4f', high),
            printf('%.4f', noise_floor),
            verdict
        ])) AS figures
    FROM verdicts
    WHERE metric != 'latency' AND value IS NOT NULL
    GROUP BY series_id, device, night
),
content AS (
    SELECT
        cell,
        list_transform(
            [left(pte_sha256, 8), left(source_commit.id, 7), left(runner_sha256, 8), executorch_version, launcher],
            LAMBDA fact: coalesce(fact, '')
        ) AS made_of
    FROM cell
    JOIN cell_made_from USING (cell_id)
    WHERE night >= $first AND night < $last
)
SELECT
    series_id,
    device,
    night,
    judged.cell,
    round(value / 1e6, 6) AS time_ms,
    round(baseline_value / 1e6, 6) AS baseline_ms,
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
    made_of,
    tokens,
    sessions.sessions,
    failed_sessions,
    figures
FROM (FROM verdicts WHERE metric = 'latency') AS judged
LEFT JOIN series_cause USING (series_id, device, night)
LEFT JOIN sessions USING (series_id, device, night)
LEFT JOIN failures USING (series_id, device, night)
LEFT JOIN figures USING (series_id, device, night)
LEFT JOIN content ON content.cell = judged.cell
ORDER BY series_id, device, night;
