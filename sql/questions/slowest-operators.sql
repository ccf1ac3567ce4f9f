-- Which operators take longest, delegated and portable ones?
SELECT
    sweep_id,
    device,
    model,
    precision,
    variant,
    threads,
    operator,
    kind,
    category,
    data_type,
    microkernel,
    calls_per_run,
    time_ms,
    share,
    cell
FROM operator_time
WHERE kind IN ('delegated', 'portable', 'other')
    AND NOT below_resolution
    AND _has_times(emulated)
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND ($variant IS NULL OR variant = $variant)
    AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
ORDER BY time_ms DESC, sweep_id, device, model, operator, cell
LIMIT 100;
