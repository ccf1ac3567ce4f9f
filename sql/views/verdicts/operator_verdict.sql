-- Reads: series_operator_verdict, series_cause, series_verdict, series, _newest_night
-- Which operators and categories changed, with what moves all operators of a session alike (frequency, heat, load)
-- removed: for the nights whose latency changed and for the newest night of each series. Operators with less than 1 %
-- of the time are left out.
CREATE OR REPLACE VIEW operator_verdict AS
SELECT
    series_verdict.night,
    device,
    model,
    precision,
    variant,
    threads,
    -- operator, or category: all operators of a category of several.
    level,
    -- Name with layout, data types and kernel, without its number; the category's for a category. Unattributed is the
    -- time of no operator.
    operator,
    category,
    -- regression, suspected, improvement, suspected improvement, no change or insufficient data. An operator that is
    -- new is a regression, one that is gone an improvement.
    series_operator_verdict.verdict,
    series_operator_verdict.ratio,
    series_operator_verdict.low,
    series_operator_verdict.high,
    -- Milliseconds in one run: the median over the baseline nights.
    baseline_ns / 1e6 AS baseline_ms,
    -- Milliseconds in one run, as measured: a part of the time of the night.
    time_ns / 1e6 AS time_ms,
    -- What it adds to the change of the total beside what all operators share, in percent; those of the operators and
    -- common_percent add up to 100. NULL if the total changed by less than 1 %.
    part_percent,
    -- What all operators share in the night, relative to the baseline: 1.05 if each is 5 % slower.
    common_factor,
    -- What that adds to the change of the total, in percent; NULL if the total changed by less than 1 %.
    common_percent,
    -- The verdict on the latency of the night, see `verdict`; operators never change it.
    series_verdict.verdict AS total_verdict,
    -- Sessions behind the row.
    sessions,
    -- Number of earlier nights that the latency was compared with.
    baseline_nights,
    series_id,
    -- Id of the cell, 16 hexadecimal digits: equal only for sessions of one content (see cell_overview), and the same
    -- in every warehouse.
    cell,
    -- Whether the night is the newest of its series on its device; nights without a usable figure count too.
    series_verdict.night = newest.night AS is_newest
FROM series_operator_verdict
JOIN series_cause USING (series_id, device, night)
JOIN series_verdict USING (series_id, device, night)
JOIN series USING (series_id)
JOIN _newest_night AS newest USING (series_id, device)
WHERE metric = 'latency';
