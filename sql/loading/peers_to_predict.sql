-- The operators of the cells in `cell_to_predict` that take at least `heavy_share` of the time, with what the others of
-- their kind in the cell reach of the roof of the device: quartiles and median. Each delegate numbers its operators
-- from 1: a name that occurs more than once does not tell which of them changes.
WITH
known AS (
    SELECT
        cell_id,
        operator,
        operator_type,
        time_ms,
        time_share,
        roof_ms,
        share,
        count(*) OVER (PARTITION BY cell_id, operator) AS namesakes
    FROM _operator_roof
    WHERE cell_id IN (SELECT cell_id FROM cell_to_predict)
    QUALIFY bound IN ('compute', 'memory') AND time_ms > resolution_ms AND roof_ms > 0
),
compared AS (
    SELECT
        heavy.cell_id,
        heavy.operator,
        heavy.time_ms,
        heavy.roof_ms,
        count(*) AS peers,
        quantile_cont(other.share, [0.25, 0.5, 0.75]) AS shares
    FROM known AS heavy
    JOIN known AS other
        ON other.cell_id = heavy.cell_id
            AND other.operator_type = heavy.operator_type
            AND other.operator <> heavy.operator
    WHERE heavy.time_share >= $heavy_share AND heavy.namesakes = 1
    GROUP BY heavy.cell_id, heavy.operator, heavy.time_ms, heavy.roof_ms
)
SELECT
    compared.*,
    series_id,
    cell.device,
    cell.night,
    execute_ns / typical_runs / 1e6 AS cell_ms,
    low_ms,
    high_ms,
    noise_floor
FROM compared
JOIN cell_to_predict USING (cell_id)
JOIN cell USING (cell_id)
JOIN cell_time USING (cell_id)
LEFT JOIN cell_interval USING (cell_id)
LEFT JOIN (SELECT cell, noise_floor FROM series_verdict WHERE metric = 'latency') USING (cell)
ORDER BY cell_id, operator;
