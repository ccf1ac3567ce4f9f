-- Which operators could win most time, and which take longest where the roof of the device is unknown?
-- Those that take less than the clock resolves are left out; `etfarm trace` lists them.
SELECT *
FROM (
    SELECT
        sweep_id,
        device,
        model,
        precision,
        variant,
        threads,
        operator_type AS operator,
        kind,
        category,
        data_type,
        microkernel,
        sum(calls_per_run) AS calls_per_run,
        sum(timed.time_ms) AS time_ms,
        sum(time_share) AS share,
        -- NULL unless it is known for all calls.
        CASE WHEN bool_and(timed.roof_ms IS NOT NULL) THEN sum(timed.roof_ms) END AS roof_ms,
        CASE WHEN bool_and(timed.roof_ms IS NOT NULL) THEN sum(timed.winnable_ms) END AS winnable_ms,
        arg_max(timed.bound, timed.time_ms) AS bound,
        cell
    FROM operator_roofline AS timed
    WHERE _has_times(emulated)
        AND _is_model(model, $model)
        AND ($device IS NULL OR device = $device)
        AND ($precision IS NULL OR precision = $precision)
        AND ($variant IS NULL OR variant = $variant)
        AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
    GROUP BY ALL
    HAVING sum(timed.time_ms) >= sum(resolution_ms)
)
ORDER BY coalesce(winnable_ms, time_ms) DESC, sweep_id, device, model, operator, cell
LIMIT 100;
