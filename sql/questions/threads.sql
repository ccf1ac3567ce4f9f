-- How many threads should a model have, by variant? Of the newest sweep that measured several numbers, or of $sweep.
SELECT
    device,
    model,
    precision,
    variant,
    threads,
    time_ms,
    speedup,
    recommended_threads,
    sessions,
    sweep_id,
    cell
FROM thread_scaling
WHERE _has_times(emulated)
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND sweep_id = coalesce($sweep, (
        SELECT max_by(sweep_id, night)
        FROM thread_scaling
        WHERE _has_times(emulated) AND _is_model(model, $model) AND ($device IS NULL OR device = $device)
    ))
ORDER BY device, model, precision <> 'fp32', precision, thread_group, variant, threads;
