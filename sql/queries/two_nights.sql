-- The series of two nights side by side, the largest changes first: latency as it was judged in each of them.
SELECT
    series.model,
    device,
    series.precision,
    series.threads,
    series_id AS cell,
    series.variant,
    series_id,
    before.value / 1e6 AS before_ms,
    after.value / 1e6 AS after_ms,
    after.value / nullif(before.value, 0) AS ratio,
    before.verdict AS before_verdict,
    after.verdict AS after_verdict,
    before.cell AS before_cell,
    after.cell AS after_cell
FROM (FROM series_verdict WHERE night = $before AND metric = 'latency') AS before
FULL JOIN (FROM series_verdict WHERE night = $after AND metric = 'latency') AS after USING (series_id, device)
JOIN series USING (series_id)
WHERE NOT _is_roof(series.model)
ORDER BY
    abs(ln(nullif(after.value, 0) / nullif(before.value, 0))) DESC NULLS LAST, series.model, device, series.threads,
    series.precision, series.variant, series_id;
