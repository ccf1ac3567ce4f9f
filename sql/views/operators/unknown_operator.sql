-- Reads: session_node, node, model, operator_category
-- Operators that have no row in sql/seeds/operator_category.csv and therefore count as Other; not estimated ones, of
-- which only the sum was measured.
CREATE OR REPLACE VIEW unknown_operator AS
SELECT
    -- Name of the operator, as a row of the table would have it.
    operator AS name,
    -- delegated, portable or other.
    kind,
    -- Sessions in which it ran.
    count(DISTINCT session_key) AS sessions,
    -- A model that contains it.
    min(model.name) AS model
FROM session_node
JOIN node USING (node_id)
JOIN model USING (model_id)
WHERE _is_operator(kind)
    AND NOT _is_estimate(operator)
    AND NOT EXISTS (
        FROM operator_category AS category WHERE category.operator = node.operator AND category.kind = node.kind
    )
GROUP BY operator, kind;
