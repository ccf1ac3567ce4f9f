-- Where the time goes with SME2 off and on. Emulated devices are left out: their times mean nothing.
SELECT
    named.* EXCLUDE (place),
    category,
    share_off,
    share_on,
    change_points,
    time_off_ms,
    time_on_ms,
    change_ms,
    below_resolution
FROM bottleneck_shift
JOIN _named_pair AS named USING (pair, sweep_id)
WHERE sweep_id = $sweep_id AND without_times IS NULL AND (time_off_ms <> 0 OR time_on_ms <> 0)
ORDER BY place, time_off_ms DESC, category;
