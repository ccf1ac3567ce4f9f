-- The operators of series in a night beside their baseline, the largest change first, with what all operators share
-- removed; $series are ids of series, each followed by its device and the night.
SELECT
    series_id,
    device,
    night,
    operator,
    category,
    baseline_ms AS before_ms,
    time_ms AS after_ms,
    ratio,
    low,
    high,
    time_ms - baseline_ms AS added_ms,
    round(part_percent) + 0 AS part_percent,
    verdict,
    common_factor,
    common_percent
FROM operator_verdict
WHERE level = 'operator' AND series_id || device || night IN (SELECT unnest($series::VARCHAR[]))
ORDER BY series_id, device, abs(added_ms) DESC, operator;
