-- The weight of portable operators by cell. Emulated devices are left out: their times mean nothing.
SELECT named.* EXCLUDE (place), portable_ms, share, execute_ms, sessions
FROM portable_weight
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND without_times IS NULL
ORDER BY place;
