CREATE OR REPLACE VIEW operator_verdict AS
SELECT
    series_verdict.night,
    device,
    model,
    precision,
    variant,
    threads,
    level,
    operator,
    category,
    series_operator_verdict.verdict,
    series_operator_verdict.ratio,
    series_operator_verdict.low,
    series_operator_verdict.high,
    baseline_ns / 1e6 AS baseline_ms,
    time_ns / 1e6 AS time_ms,
    part_percent,
    common_factor,
    common_percent,
    series_verdict.verdict AS total_verdict,
    sessions,
    baseline_nights,
    series_id,
    cell,
    series_verdict.night = newest.night AS is_newest
FROM series_operator_verdict
JOIN series_cause USING (series_id, device, night)
JOIN series_verdict USING (series_id, device, night)
JOIN series USING (series_id)
JOIN _newest_night AS newest USING (series_id, device)
WHERE metric = 'latency';

COMMENT ON VIEW operator_verdict IS 'Which operators and categories changed, with what moves all operators of a session alike (frequency, heat, load) removed: for the nights whose latency changed and for the newest night of each series. Operators with less than 1 % of the time are left out.';
COMMENT ON COLUMN operator_verdict.level IS 'operator, or category: all operators of a category of several.';
COMMENT ON COLUMN operator_verdict.operator IS 'Name with layout, data types and kernel, without its number; the category''s for a category. Unattributed is the time of no operator.';
COMMENT ON COLUMN operator_verdict.verdict IS 'regression, suspected, improvement, no change or insufficient data. An operator that is new is a regression, one that is gone an improvement.';
COMMENT ON COLUMN operator_verdict.ratio IS 'Time over that of the baseline, without what all operators share; NULL for an operator that is new or gone.';
COMMENT ON COLUMN operator_verdict.baseline_ms IS 'Milliseconds in one run: the median over the baseline nights.';
COMMENT ON COLUMN operator_verdict.time_ms IS 'Milliseconds in one run, as measured: a part of the time of the night.';
COMMENT ON COLUMN operator_verdict.part_percent IS 'What it adds to the change of the total beside what all operators share, in percent; those of the operators and common_percent add up to 100. NULL if the total changed by less than 1 %.';
COMMENT ON COLUMN operator_verdict.common_factor IS 'What all operators share that night, relative to the baseline: 1.05 if each is 5 % slower.';
COMMENT ON COLUMN operator_verdict.common_percent IS 'What that adds to the change of the total, in percent; NULL if the total changed by less than 1 %.';
COMMENT ON COLUMN operator_verdict.total_verdict IS 'The verdict on the latency of the night, see `verdict`; operators never change it.';
COMMENT ON COLUMN operator_verdict.baseline_nights IS 'Number of earlier nights that the latency was compared with.';
