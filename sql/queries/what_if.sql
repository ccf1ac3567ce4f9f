-- What the times of the cells of a sweep would be if one thing changed, then the predictions that its cells came after,
-- with what was measured.
SELECT
    named.* EXCLUDE (place),
    kind,
    operators,
    operator_ms,
    time_ms,
    predicted_ms,
    low_ms,
    high_ms,
    NULL AS measured_ms,
    NULL AS changed_at_once,
    NULL AS held,
    basis,
    place,
    time_ms - predicted_ms AS saved_ms
FROM what_if
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id
UNION ALL BY NAME
SELECT
    named.* EXCLUDE (place),
    kind,
    operators,
    operator_ms,
    time_ms,
    expected_ms AS predicted_ms,
    expected_low_ms AS low_ms,
    expected_high_ms AS high_ms,
    measured_ms,
    changed_at_once,
    held,
    basis,
    place,
    time_ms - expected_ms AS saved_ms
FROM what_if
JOIN _named_cell AS named ON named.cell = measured_cell AND named.sweep_id = measured_sweep_id
WHERE measured_sweep_id = $sweep_id
ORDER BY place, saved_ms DESC;
