-- Which modules of the models take longest, in the operators that they call themselves?
SELECT
    sweep_id,
    device,
    model,
    precision,
    variant,
    threads,
    module_path,
    module_class,
    own_ms,
    own_share,
    time_ms,
    share,
    cell
FROM module_time
WHERE kind = 'module'
    AND own_ms > 0
    AND _has_times(emulated)
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND ($variant IS NULL OR variant = $variant)
    AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
ORDER BY own_ms DESC, sweep_id, device, model, module_path, cell
LIMIT 100;
