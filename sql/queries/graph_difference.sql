-- Operators whose number differs between the exported graphs of two cells, for each pair of $cells_a and $cells_b.
-- Their counts inside and outside delegates, and the modules with other counts (empty if an export states none).
WITH
sides AS (SELECT generate_subscripts($cells_a, 1) AS place, unnest($cells_a) AS cell_a, unnest($cells_b) AS cell_b),
side AS (
    SELECT DISTINCT place, is_b, model_id
    FROM (
        SELECT place, cell_a AS cell, FALSE AS is_b FROM sides
        UNION ALL
        SELECT place, cell_b AS cell, TRUE AS is_b FROM sides
    )
    JOIN cell USING (cell)
    JOIN session_cell USING (cell_id)
    JOIN session USING (session_key)
),
counted AS (
    SELECT
        place,
        operator,
        coalesce(sum(count) FILTER (NOT is_b AND placement = 'delegated'), 0)::BIGINT AS delegated_a,
        coalesce(sum(count) FILTER (is_b AND placement = 'delegated'), 0)::BIGINT AS delegated_b,
        coalesce(sum(count) FILTER (NOT is_b AND placement != 'delegated'), 0)::BIGINT AS portable_a,
        coalesce(sum(count) FILTER (is_b AND placement != 'delegated'), 0)::BIGINT AS portable_b
    FROM side
    JOIN model_operator USING (model_id)
    -- A .pte file that the user brought states no operators.
    WHERE place IN (
            SELECT place FROM side JOIN model_operator USING (model_id) GROUP BY place HAVING count(DISTINCT is_b) = 2
        )
    GROUP BY place, operator
    HAVING delegated_a != delegated_b OR portable_a != portable_b
),
placed AS (
    SELECT place, is_b, source_operator AS operator, module_path, delegate_node IS NOT NULL AS is_delegated
    FROM side
    JOIN (SELECT model_id, max(source_map_id) AS source_map_id FROM source_map GROUP BY model_id) USING (model_id)
    JOIN node_source USING (source_map_id)
    WHERE source_operator IS NOT NULL AND module_path IS NOT NULL
),
changed_module AS (
    SELECT place, operator, list_sort(list(DISTINCT module_path)) AS modules
    FROM (
        SELECT place, operator, module_path
        FROM placed
        GROUP BY place, operator, module_path, is_delegated
        HAVING count(*) FILTER (is_b) != count(*) FILTER (NOT is_b)
    )
    GROUP BY place, operator
)
SELECT
    place - 1 AS place,
    operator,
    delegated_a,
    delegated_b,
    portable_a,
    portable_b,
    CASE
        WHEN (SELECT count(DISTINCT is_b) FROM placed WHERE placed.place = counted.place) = 2
            THEN coalesce(modules, [])
        ELSE []
    END AS modules
FROM counted
LEFT JOIN changed_module USING (place, operator)
ORDER BY
    place,
    greatest(abs(portable_b - portable_a), abs(delegated_b - delegated_a)) DESC,
    operator;
