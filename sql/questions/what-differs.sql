-- What differs between two cells (--cell and --other, ids as in the column cell of any view)?
-- $other: cell
WITH
facts AS (
    SELECT * REPLACE (CASE WHEN _has_times(emulated) THEN time_ms END AS time_ms)
    FROM cell_overview
    WHERE cell IN ($cell, $other)
),
both_cells AS (
    SELECT cell AS id, COLUMNS(* EXCLUDE (cell))::VARCHAR
    FROM facts
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
