-- The cells of a comparison with their sides, the last of $comparisons, and of those before it whose both sides had the
-- same content on the same device: everything that makes a cell, except the sweep and its night.
WITH
content AS (
    SELECT
        cell,
        arm,
        hash(*COLUMNS(
            * EXCLUDE (cell_id, cell, pair, subject, subject_pair, thread_group, sweep_id, night, comparison)
        )) AS content
    FROM cell
    WHERE comparison IN $comparisons
),
side AS (
    SELECT comparison_result.comparison, content.*
    FROM comparison_result
    JOIN content ON cell IN (cell_a, cell_b)
),
call AS (
    SELECT comparison, list(content ORDER BY arm) AS sides
    FROM side
    GROUP BY comparison
)
SELECT arm, cell
FROM side
JOIN call USING (comparison)
WHERE sides = (SELECT sides FROM call WHERE comparison = $comparisons[-1])
ORDER BY arm, cell;
