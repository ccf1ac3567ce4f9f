-- What differs between two cells (--cell and --other, ids as in the column cell of any view)?
WITH
latency AS (
    SELECT cell, median(median_ms) AS median_ms
    FROM session_latency
    WHERE cell IN ($cell, $other) AND _has_times(emulated)
    GROUP BY cell
),
both_cells AS (
    SELECT cell AS id, COLUMNS(* EXCLUDE (cell))::VARCHAR
    FROM cell_overview
    LEFT JOIN latency USING (cell)
    WHERE cell IN ($cell, $other)
),
fields AS (
    FROM both_cells
    UNPIVOT INCLUDE NULLS (value FOR field IN (COLUMNS(* EXCLUDE (id))))
)
SELECT
    field,
    max(value) FILTER (id = $cell) AS of_cell,
    max(value) FILTER (id = $other) AS of_other
FROM fields
GROUP BY field
HAVING of_cell IS DISTINCT FROM of_other
ORDER BY field;
