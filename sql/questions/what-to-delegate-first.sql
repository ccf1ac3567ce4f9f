-- What to delegate first: which portable operators take the largest share of Method::execute?
SELECT
    sweep_id, device, model, precision, variant, threads, operator, category, calls_per_run, time_ms, share, cell
FROM operator_time
WHERE kind = 'portable'
    AND _has_times(emulated)
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
ORDER BY share DESC, sweep_id, device, model, operator, cell
LIMIT 100;
