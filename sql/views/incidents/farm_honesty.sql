-- Reads: series_verdict, incident_series, incident, device_noise, comparison_result, cell
-- How far the verdicts of each week can be trusted, measured where nothing changed: nights with the same program,
-- runner and settings as the last good night, and noise sessions, which compare one content with itself.
CREATE OR REPLACE VIEW farm_honesty AS
WITH
judged AS (
    SELECT
        date_trunc('week', series_verdict.night)::DATE AS week,
        series_verdict.*,
        baseline_nights > 0
        AND verdict != 'insufficient data'
        AND _content(
            now.pte_sha256, now.inputs_sha256, now.runner_sha256, now.launcher, now.executions, now.warmup_executions
        )
        = _content(
            before.pte_sha256,
            before.inputs_sha256,
            before.runner_sha256,
            before.launcher,
            before.executions,
            before.warmup_executions
        ) AS is_equal
    FROM series_verdict
    LEFT JOIN cell AS now ON now.cell = series_verdict.cell
    LEFT JOIN cell AS before ON before.cell = baseline_cell
    WHERE metric = 'latency'
),
equal_nights AS (
    SELECT
        week,
        count(DISTINCT night) AS nights,
        count(*) FILTER (is_equal) AS equal_nights,
        count(*) FILTER (is_equal AND verdict != 'no change') AS false_alarms,
        count(*) FILTER (is_equal AND low IS NOT NULL) AS intervals,
        count(*) FILTER (is_equal AND low <= 1 AND high >= 1) AS covering
    FROM judged
    GROUP BY week
),
noise AS (
    SELECT
        date_trunc('week', night)::DATE AS week,
        count(*) AS noise_comparisons,
        count(*) FILTER (low <= 1 AND high >= 1) AS noise_covering
    FROM comparison_result
    JOIN cell ON cell = cell_b
    WHERE purpose = 'noise' AND low IS NOT NULL AND night IS NOT NULL
    GROUP BY week
),
-- An incident is counted in the week in which each of these happened.
incident_event AS (
    SELECT
        date_trunc('week', night)::DATE AS week,
        count(*) FILTER (event = 'confirmed') AS confirmed,
        count(*) FILTER (event = 'withdrawn') AS withdrawn
    FROM (
        SELECT confirmed_on AS night, 'confirmed' AS event
        FROM incident
        WHERE kind IN ('model', 'device') AND confirmed_on IS NOT NULL
        UNION ALL
        SELECT closed_on AS night, state AS event
        FROM incident
        WHERE kind IN ('model', 'device') AND state = 'withdrawn'
    )
    GROUP BY week
),
flaky AS (
    SELECT week, list_sort(list(device)) AS flaky_devices
    FROM (
        SELECT date_trunc('week', night)::DATE AS week, device
        FROM (
            SELECT night, device
            FROM judged
            WHERE verdict = 'invalid environment'
            UNION ALL
            SELECT judged.night, judged.device
            FROM judged
            JOIN incident_series USING (series_id, device, metric)
            WHERE kind = 'failure' AND subject = judged.device AND verdict = 'failed' AND judged.night >= onset
            UNION ALL
            SELECT night, device
            FROM device_noise
            WHERE is_doubled
        )
        GROUP BY week, device
        HAVING count(DISTINCT night) >= 2
    )
    GROUP BY week
)
SELECT
    -- Its Monday.
    week,
    -- Nights that were judged.
    coalesce(nights, 0) AS nights,
    -- Nights of series, that of each device counted, in which nothing had changed but the night.
    coalesce(equal_nights, 0) AS equal_nights,
    -- Number of them with another verdict than no change; a device that did become slower counts, too.
    coalesce(false_alarms, 0) AS false_alarms,
    -- false_alarms per 100 equal_nights; NULL without any.
    100 * false_alarms / nullif(equal_nights, 0) AS false_alarms_per_100,
    -- Share of the 95 % intervals of these nights that contain no change; NULL without any.
    covering / nullif(intervals, 0) AS coverage,
    -- Comparisons of one content with itself, interleaved, that have an interval.
    coalesce(noise_comparisons, 0) AS noise_comparisons,
    -- Share of their intervals that contain no change; NULL without any.
    noise_covering / nullif(noise_comparisons, 0) AS noise_coverage,
    -- Incidents of times and other figures that were confirmed in the week.
    coalesce(confirmed, 0) AS confirmed,
    -- Those that were withdrawn in it: the figure came back before it was confirmed.
    coalesce(withdrawn, 0) AS withdrawn,
    -- Devices that lost measurements in two nights or more: conditions that were not met, failures of the device, or a
    -- noise that had doubled.
    coalesce(flaky_devices, []) AS flaky_devices
FROM equal_nights
FULL JOIN noise USING (week)
FULL JOIN incident_event USING (week)
FULL JOIN flaky USING (week);
