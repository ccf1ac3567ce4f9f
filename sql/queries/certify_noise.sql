-- The comparison of a certification's first model with itself, and the smallest change that it could show.
SELECT comparison.ratio, comparison.low, comparison.high, noise
FROM comparison
JOIN device_noise USING (comparison, sweep_id)
WHERE sweep_id = $sweep_id;
