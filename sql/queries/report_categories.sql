-- Where the time goes, by category. Emulated devices are left out: their times mean nothing.
SELECT
    model,
    device,
    emulated IS TRUE AS emulated,
    precision,
    variant,
    threads,
    cell,
    differs,
    category,
    time_ms,
    share,
    resolution_ms
FROM category_share
LEFT JOIN _differs USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND _has_times(emulated)
ORDER BY model, device, threads, precision <> 'fp32', precision, variant, differs, cell, category;
