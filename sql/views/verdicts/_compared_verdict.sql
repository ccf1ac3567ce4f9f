-- Reads: series_verdict, comparison_result
-- The verdicts with the two figures that their ratio is of. Both are measured: where a comparison of the night decided,
-- they are the times of its sides, and all else is the figure of the night and that of its baseline.
CREATE OR REPLACE VIEW _compared_verdict AS
SELECT
    series_verdict.* EXCLUDE (value, baseline_value),
    value AS night_value,
    coalesce(time_b, value) AS value,
    CASE WHEN time_b IS NULL THEN baseline_value ELSE time_a END AS baseline_value,
    -- Of the sides of the comparison; NULL without one.
    sessions_a,
    sessions_b
FROM series_verdict
LEFT JOIN (SELECT comparison, time_a, time_b, sessions_a, sessions_b FROM comparison_result) USING (comparison);
