CREATE OR REPLACE VIEW verdict AS
WITH
-- The versions that a cell's model was exported with.
version AS (
    SELECT DISTINCT ON (cell) cell, versions
    FROM session
    JOIN session_cell USING (session_key)
    JOIN cell USING (cell_id)
    JOIN model USING (model_id)
    WHERE versions IS NOT NULL
    ORDER BY cell, model_id
),
changed AS (
    SELECT
        now.cell,
        before.cell AS baseline_cell,
        list_filter(
            [
                CASE WHEN now.pte_sha256 IS DISTINCT FROM before.pte_sha256 THEN '.pte file' END,
                CASE WHEN now.runner_sha256 IS DISTINCT FROM before.runner_sha256 THEN 'runner' END,
                CASE WHEN now.serial IS DISTINCT FROM before.serial THEN 'device ' || _was(before.serial, now.serial) END,
                CASE WHEN now.os_version IS DISTINCT FROM before.os_version THEN 'OS ' || _was(before.os_version, now.os_version) END,
                CASE WHEN now.executions != before.executions THEN 'executions ' || _was(before.executions, now.executions) END,
                CASE
                    WHEN now.warmup_executions != before.warmup_executions
                    THEN 'warm-up ' || _was(before.warmup_executions, now.warmup_executions)
                END
            ]
            || list_transform(
                list_filter(
                    json_keys(coalesce(version_now.versions, '{}')),
                    lambda name: (version_now.versions ->> name) IS DISTINCT FROM (version_before.versions ->> name)
                ),
                lambda name: name || ' ' || _was((version_before.versions ->> name), (version_now.versions ->> name))
            ),
            lambda change: change IS NOT NULL
        ) AS changes
    FROM (SELECT DISTINCT cell, baseline_cell FROM series_verdict) AS judged
    JOIN cell AS now ON now.cell = judged.cell
    JOIN cell AS before ON before.cell = judged.baseline_cell
    LEFT JOIN version AS version_now ON version_now.cell = now.cell
    LEFT JOIN version AS version_before ON version_before.cell = before.cell
)
SELECT
    night,
    series_verdict.device,
    series.model,
    series.precision,
    series.variant,
    series.threads,
    verdict,
    ratio,
    low,
    high,
    median_ns / 1e6 AS median_ms,
    sessions,
    invalid_sessions,
    z,
    noise_floor,
    baseline_nights,
    baseline_from,
    baseline_to,
    since,
    nullif(array_to_string(changes, ', '), '') AS changed,
    reason,
    sweep_id,
    series_id,
    series_verdict.cell,
    series_verdict.baseline_cell,
    night = max(night) OVER (PARTITION BY series_id, series_verdict.device) AS is_newest
FROM series_verdict
JOIN series USING (series_id)
LEFT JOIN (SELECT cell, sweep_id FROM cell) AS judged_cell ON judged_cell.cell = series_verdict.cell
LEFT JOIN changed ON changed.cell = series_verdict.cell AND changed.baseline_cell = series_verdict.baseline_cell;

COMMENT ON VIEW verdict IS 'Whether each series on each device got slower: one row per night, judged with the nights before it. Emulated devices are not judged.';
COMMENT ON COLUMN verdict.verdict IS 'regression, suspected, improvement, no change, insufficient data or invalid environment.';
COMMENT ON COLUMN verdict.ratio IS 'Median of the night over the median of its baseline: above 1 is slower. NULL without a baseline.';
COMMENT ON COLUMN verdict.low IS 'Lower end of the 95 % interval of the ratio; NULL if there is none.';
COMMENT ON COLUMN verdict.high IS 'Upper end of the 95 % interval of the ratio; NULL if there is none.';
COMMENT ON COLUMN verdict.median_ms IS 'Median of the medians of the night''s sessions, in milliseconds; NULL without a session that counts.';
COMMENT ON COLUMN verdict.sessions IS 'Sessions that count: of the newest cell of the night.';
COMMENT ON COLUMN verdict.invalid_sessions IS 'Sessions that ran outside the limits of the sweep.';
COMMENT ON COLUMN verdict.z IS 'How far the night is from its baseline nights, in robust standard deviations.';
COMMENT ON COLUMN verdict.noise_floor IS 'By how much the series moves from night to night without a change, as a fraction of its median.';
COMMENT ON COLUMN verdict.baseline_nights IS 'Number of earlier nights that it was compared with.';
COMMENT ON COLUMN verdict.baseline_from IS 'First of them.';
COMMENT ON COLUMN verdict.baseline_to IS 'Last of them.';
COMMENT ON COLUMN verdict.since IS 'First night of the present step of a regression, suspected regression or improvement.';
COMMENT ON COLUMN verdict.changed IS 'What differs from the last night of the baseline: files, versions, device; NULL if nothing does.';
COMMENT ON COLUMN verdict.reason IS 'The verdict in a sentence.';
COMMENT ON COLUMN verdict.baseline_cell IS 'The cell of the night baseline_to.';
COMMENT ON COLUMN verdict.is_newest IS 'Whether the night is the newest of its series on its device.';
