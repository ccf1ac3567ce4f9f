CREATE OR REPLACE VIEW metric_verdict AS
SELECT
    series_verdict.night,
    device,
    model,
    precision,
    variant,
    threads,
    metric,
    verdict,
    baseline_value,
    value,
    ratio,
    low,
    high,
    sessions,
    invalid_sessions,
    z,
    noise_floor,
    baseline_nights,
    baseline_from,
    baseline_to,
    since,
    _changes(before.facts, now.facts) AS changed,
    reason,
    now.sweep_id,
    series_id,
    series_verdict.cell,
    baseline_cell,
    series_verdict.night = newest.night AS is_newest
FROM series_verdict
JOIN series USING (series_id)
JOIN _newest_night AS newest USING (series_id, device)
LEFT JOIN _cell_facts AS now ON now.cell = series_verdict.cell
LEFT JOIN _cell_facts AS before ON before.cell = baseline_cell;

COMMENT ON VIEW metric_verdict IS 'Whether any figure of each series on each device got worse: one row per metric and night, judged with the nights before it. The rows of the metric latency are those of `verdict`. A night without a figure has no row.';
COMMENT ON COLUMN metric_verdict.metric IS 'latency, load time, first execution, peak memory, .pte size, portable share, SME coverage or output error (the largest absolute one against eager PyTorch).';
COMMENT ON COLUMN metric_verdict.verdict IS 'regression, suspected, improvement, device slower, device faster, device worse or device better (neither model nor runner changed), no change, inaccurate (its outputs are beyond the limit of the recipe, see cell_accuracy), failed (no session has a result, see failed_session), insufficient data or invalid environment. Less SME coverage is a regression; of the other metrics, more is.';
COMMENT ON COLUMN metric_verdict.baseline_value IS 'Median of the baseline nights, in the unit of value, or value / ratio where the reason names another comparison; NULL without a baseline.';
COMMENT ON COLUMN metric_verdict.value IS 'Mean of the middle half of the night''s sessions: nanoseconds of a time, bytes of memory and size, 0 to 1 of a share or coverage, the absolute error of an output.';
COMMENT ON COLUMN metric_verdict.ratio IS 'value / baseline_value; NULL without a baseline and where that is 0.';
COMMENT ON COLUMN metric_verdict.sessions IS 'Sessions with such a figure, of the newest cell of the night; SME coverage is one figure of the cell.';
COMMENT ON COLUMN metric_verdict.z IS 'How far the night is from its baseline nights, in robust standard deviations; NULL for .pte size, which does not vary.';
COMMENT ON COLUMN metric_verdict.noise_floor IS 'By how much the figure moves from night to night without a change, as a fraction of its baseline; NULL where that is 0.';
COMMENT ON COLUMN metric_verdict.baseline_to IS 'Last of them that does not share the change.';
COMMENT ON COLUMN metric_verdict.changed IS 'What differs from the last night of the baseline: files, versions, device; NULL if nothing does.';
COMMENT ON COLUMN metric_verdict.reason IS 'The verdict in a sentence, with both figures.';
