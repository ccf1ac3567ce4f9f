-- The operators that take the most time: ten per cell, and any others above 5 % (FLAGGED_SHARE of the report). Those below
-- the resolution of their clock are counted and not ranked.
WITH
ranked AS (
    SELECT
        model,
        device,
        emulated IS TRUE AS emulated,
        precision,
        variant,
        threads,
        cell,
        differs,
        _operator_name(operator, layout, data_type, microkernel) AS operator,
        category,
        kind,
        calls_per_run,
        time_ms,
        share,
        below_resolution,
        count(*) FILTER (below_resolution) OVER (PARTITION BY cell) AS unresolved,
        row_number() OVER (
            PARTITION BY cell
            ORDER BY below_resolution, time_ms DESC, operator, data_type, microkernel
        ) AS place
    FROM operator_time
    LEFT JOIN _differs USING (cell, sweep_id)
    WHERE sweep_id = $sweep_id AND _has_times(emulated) AND category <> 'Unattributed'
)
SELECT * EXCLUDE (place, below_resolution)
FROM ranked
WHERE NOT below_resolution AND ((place <= 10 AND time_ms > 0) OR share > 0.05)
ORDER BY model, device, threads, precision <> 'fp32', precision, variant, differs, cell, place;
