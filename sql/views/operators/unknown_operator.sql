CREATE OR REPLACE VIEW unknown_operator AS
SELECT operator AS name, kind, count(DISTINCT session_key) AS sessions, min(model.name) AS model
FROM session_node
JOIN node USING (node_id)
JOIN model USING (model_id)
WHERE _is_operator(kind)
    AND NOT EXISTS (
        FROM operator_category AS known WHERE known.operator = node.operator AND known.kind = node.kind
    )
GROUP BY operator, kind;

COMMENT ON VIEW unknown_operator IS 'Operators that have no row in sql/seeds/operator_category.csv and therefore count as Other.';
COMMENT ON COLUMN unknown_operator.name IS 'Name of the operator, as a row of the table would have it.';
COMMENT ON COLUMN unknown_operator.kind IS 'delegated, portable or other.';
COMMENT ON COLUMN unknown_operator.sessions IS 'Sessions in which it ran.';
COMMENT ON COLUMN unknown_operator.model IS 'A model that contains it.';
