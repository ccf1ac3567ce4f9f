-- The nights of one series on one device that have a figure, and what ran: $series_id, $device.
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
LEFT JOIN _cell_export USING (cell)
WHERE series_id = $series_id AND verdict.device = $device AND time_ms IS NOT NULL
ORDER BY verdict.night;
