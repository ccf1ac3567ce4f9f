-- Where the time goes with SME2 beside where it goes without it.
SELECT
    model,
    device,
    precision,
    threads,
    runner_source,
    category,
    share_off,
    share_on,
    change_points,
    time_off_ms,
    time_on_ms,
    change_ms
FROM bottleneck_shift
WHERE sweep_id = $sweep_id AND emulated IS NOT TRUE AND (time_off_ms <> 0 OR time_on_ms <> 0)
ORDER BY model, device, threads, precision <> 'fp32', precision, runner_source, time_off_ms DESC, category;
