-- How much of each model's time is in portable operators?
SELECT sweep_id, device, model, precision, variant, threads, portable_ms, execute_ms, share, sessions, cell
FROM portable_weight
WHERE _has_times(emulated)
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
ORDER BY share DESC, sweep_id, device, model, precision, variant, threads;
