-- The operators that take the most time: ten per cell, and any others above $heavy_share. Those below the resolution of
-- their clock are counted and not ranked.
WITH
ranked AS (
    SELECT
        cell,
        sweep_id,
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
        ) AS rank
    FROM operator_time
    WHERE sweep_id = $sweep_id AND category <> 'Unattributed'
)
SELECT
    named.* EXCLUDE (place),
    ranked.* EXCLUDE (cell, sweep_id, below_resolution, rank)
FROM ranked
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE without_times IS NULL AND NOT below_resolution AND ((rank <= 10 AND time_ms > 0) OR share > $heavy_share)
ORDER BY place, rank;
