-- Where the time goes with SME2 off and on. Emulated devices are left out: their times mean nothing.
SELECT
    model,
    device,
    emulated IS TRUE AS emulated,
    precision,
    threads,
    pair,
    differs,
    category,
    share_off,
    share_on,
    change_points,
    time_off_ms,
    time_on_ms,
    change_ms,
    below_resolution
FROM bottleneck_shift
JOIN _pair_differs USING (pair)
WHERE sweep_id = $sweep_id AND _has_times(emulated) AND (time_off_ms <> 0 OR time_on_ms <> 0)
ORDER BY model, device, threads, precision <> 'fp32', precision, differs, pair, time_off_ms DESC, category;
