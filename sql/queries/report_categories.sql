-- Where the time goes, by category. Emulated devices are left out: their times mean nothing.
SELECT
    model,
    device,
    emulated IS TRUE AS emulated,
    precision,
    variant,
    threads,
    runner_source,
    category,
    time_ms,
    share
FROM category_share
WHERE sweep_id = $sweep_id AND _has_times(emulated)
ORDER BY model, device, threads, precision <> 'fp32', precision, variant, runner_source, category;
