-- The cells in `cell_to_predict` whose portable operators take at least `heavy_share` of the time: their time with its
-- interval, the portable operators, and what the export states of them.
WITH
portable AS (
    SELECT
        cell_id,
        list(
            { 'operator': operator, 'calls': calls_per_run, 'time_ms': time_ns / 1e6 } ORDER BY time_ns DESC, operator
        ) AS portable
    FROM cell_operator
    WHERE kind = 'portable' AND cell_id IN (SELECT cell_id FROM cell_to_predict)
    GROUP BY cell_id
    HAVING sum(share) >= $heavy_share
),
exported AS (
    SELECT pte_sha256, list({ 'operator': operator, 'reason': reason } ORDER BY operator, reason) AS exported
    FROM (
        SELECT DISTINCT pte_sha256, operator, reason
        FROM model_operator
        JOIN model USING (model_id)
        WHERE placement = 'portable'
    )
    WHERE pte_sha256 IN (SELECT pte_sha256 FROM cell WHERE cell_id IN (SELECT cell_id FROM portable))
    GROUP BY pte_sha256
)
SELECT
    cell_id,
    series_id,
    cell.device,
    cell.night,
    precision,
    platform,
    coalesce(threads, 1) AS threads,
    execute_ns / typical_runs / 1e6 AS cell_ms,
    low_ms,
    high_ms,
    noise_floor,
    portable,
    coalesce(exported, []) AS exported
FROM portable
JOIN cell_to_predict USING (cell_id)
JOIN cell USING (cell_id)
JOIN cell_time USING (cell_id)
LEFT JOIN cell_interval USING (cell_id)
LEFT JOIN exported USING (pte_sha256)
LEFT JOIN (SELECT cell, noise_floor FROM series_verdict WHERE metric = 'latency') USING (cell)
ORDER BY cell_id;
