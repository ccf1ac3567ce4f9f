-- The nights of each figure of each series that was ever worse, with what ran in it and in its last good night.
WITH
worse AS (
    SELECT DISTINCT series_id, device, metric
    FROM series_verdict
    WHERE verdict IN ('regression', 'suspected', 'inaccurate', 'failed', 'device slower', 'device worse')
        OR (verdict = 'insufficient data' AND since IS NOT NULL)
),
failed AS (
    SELECT
        series_id,
        device,
        night,
        list_sort(list(DISTINCT reason_code)) AS failures
    FROM _session
    WHERE status = 'failed' AND reason_code IS NOT NULL AND mode = 'timing' AND purpose IS NULL
    GROUP BY series_id, device, night
),
sourced AS (
    SELECT
        series_id,
        device,
        night,
        max_by(source_commits, started_at) AS commits,
        max_by(source_is_dirty, started_at) AS is_dirty
    FROM _session
    WHERE mode = 'timing' AND purpose IS NULL AND source_commits IS NOT NULL
    GROUP BY series_id, device, night
)
SELECT
    series_verdict.* EXCLUDE (sweep_id, changed, night_before, value_before, cell_before, noise_floor_change),
    series.model,
    series.precision,
    series.variant,
    _content(
        now.pte_sha256, now.inputs_sha256, now.runner_sha256, now.launcher, now.executions, now.warmup_executions
    ) AS content,
    _content(
        before.pte_sha256,
        before.inputs_sha256,
        before.runner_sha256,
        before.launcher,
        before.executions,
        before.warmup_executions
    ) AS content_before,
    now.pte_sha256 AS program,
    before.pte_sha256 AS program_before,
    left(now.runner_sha256, 8) AS runner,
    left(before.runner_sha256, 8) AS runner_before,
    coalesce(failures, []) AS failures,
    commits,
    coalesce(is_dirty, FALSE) AS is_dirty
FROM series_verdict
SEMI JOIN worse USING (series_id, device, metric)
JOIN series USING (series_id)
LEFT JOIN failed USING (series_id, device, night)
LEFT JOIN sourced USING (series_id, device, night)
LEFT JOIN cell AS now ON now.cell = series_verdict.cell
LEFT JOIN cell AS before ON before.cell = series_verdict.baseline_cell
ORDER BY series_verdict.series_id, series_verdict.device, series_verdict.metric, series_verdict.night;
