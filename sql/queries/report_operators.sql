-- The operators that take the most time: ten per cell, and any others above 5 % (FLAGGED_SHARE of the report).
WITH
ranked AS (
    SELECT
        model,
        device,
        emulated IS TRUE AS emulated,
        precision,
        variant,
        threads,
        runner_source,
        operator || CASE
            WHEN coalesce(layout, data_type) IS NULL THEN ''
            ELSE ' (' || concat_ws(', ', layout, data_type) || ')'
        END || coalesce(' ' || microkernel, '') AS operator,
        category,
        kind,
        calls_per_run,
        time_ms,
        share,
        row_number() OVER (
            PARTITION BY model, device, precision, variant, threads, runner_source
            ORDER BY time_ms DESC, operator, data_type, microkernel
        ) AS place
    FROM operator_time
    WHERE sweep_id = $sweep_id AND _has_times(emulated) AND category <> 'Unattributed'
)
SELECT * EXCLUDE (place)
FROM ranked
WHERE (place <= 10 AND time_ms > 0) OR share > 0.05
ORDER BY model, device, threads, precision <> 'fp32', precision, variant, runner_source, place;
