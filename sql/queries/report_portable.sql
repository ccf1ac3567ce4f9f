-- The weight of portable operators by cell.
SELECT model, device, precision, variant, threads, runner_source, portable_ms, share, execute_ms, sessions, runs
FROM portable_weight
WHERE sweep_id = $sweep_id AND emulated IS NOT TRUE
ORDER BY model, device, threads, precision <> 'fp32', precision, variant, runner_source;
