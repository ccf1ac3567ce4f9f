-- The nights of one series on one device that have a figure, and what ran: $series_id, $device.
WITH
made AS (
    SELECT cell, any_value(export_key ORDER BY model_id) AS export_key
    FROM session
    JOIN session_cell USING (session_key)
    JOIN cell USING (cell_id)
    JOIN model USING (model_id)
    GROUP BY cell
)
SELECT
    verdict.night,
    verdict,
    baseline_to,
    executions,
    warmup_executions,
    export_key,
    pte_sha256,
    runner_sha256
FROM verdict
JOIN cell USING (cell)
LEFT JOIN made USING (cell)
WHERE series_id = $series_id AND verdict.device = $device AND median_ms IS NOT NULL
ORDER BY verdict.night;
