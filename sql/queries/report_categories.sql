-- Where the time goes, by category; without emulated devices, whose times mean nothing.
SELECT model, device, precision, variant, threads, runner_source, category, time_ms, share
FROM category_share
WHERE sweep_id = $sweep_id AND emulated IS NOT TRUE
ORDER BY model, device, threads, precision <> 'fp32', precision, variant, runner_source, category;
