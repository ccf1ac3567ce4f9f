-- What would a model's time be if an operator were delegated or as near to the roof as its peers; what came of it?
-- Without a sweep, predictions about the newest night of each series, and those that a later night answered.
SELECT
    sweep_id,
    device,
    model,
    precision,
    variant,
    threads,
    kind,
    array_to_string(operators, ', ') AS operators,
    operator_ms,
    time_ms,
    predicted_ms,
    low_ms,
    high_ms,
    basis,
    measured_night,
    measured_ms,
    expected_ms,
    expected_low_ms,
    expected_high_ms,
    held,
    cell
FROM what_if
WHERE _has_times(emulated)
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND ($variant IS NULL OR variant = $variant)
    AND CASE WHEN $sweep IS NULL THEN is_newest OR measured_night IS NOT NULL ELSE sweep_id = $sweep END
ORDER BY measured_night IS NOT NULL, saved_ms DESC, sweep_id, device, model, cell, operators
LIMIT 100;
