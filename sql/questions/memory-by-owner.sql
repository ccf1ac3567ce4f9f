-- Who owns the memory of each model after its first run and at the peak? The largest owners come first.
SELECT
    sweep_id,
    device,
    model,
    precision,
    variant,
    threads,
    moment,
    owner,
    bytes,
    file_bytes,
    total_bytes,
    planned_bytes,
    sessions,
    cell
FROM memory_use
WHERE moment IN ('first run', 'peak')
    AND bytes <> 0
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
ORDER BY sweep_id, device, model, precision, variant, threads, moment_place, bytes DESC, owner_place;
