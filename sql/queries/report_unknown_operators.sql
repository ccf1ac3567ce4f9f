-- Operators of the sweep that no rule of sql/seeds/operator_category.csv knows, so that they count as Other.
SELECT DISTINCT unknown_operator.name, unknown_operator.kind
FROM unknown_operator
JOIN operator_time ON operator_time.operator = unknown_operator.name AND operator_time.kind = unknown_operator.kind
WHERE sweep_id = $sweep_id
ORDER BY 1, 2;
