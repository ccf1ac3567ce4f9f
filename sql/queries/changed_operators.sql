-- The confirmed changes of the operators of a series on a device in a night ($series_id, $device, $night), the largest
-- first, without what all share.
SELECT
    operator,
    verdict = 'regression' AS is_slower,
    ratio,
    baseline_ns / 1e6 AS baseline_ms,
    time_ns / 1e6 AS time_ms
FROM series_operator_verdict
WHERE series_id = $series_id
    AND device = $device
    AND night = $night
    AND level = 'operator'
    AND operator <> 'Unattributed'
    AND verdict IN ('regression', 'improvement')
ORDER BY abs(time_ns - baseline_ns) DESC, operator;
