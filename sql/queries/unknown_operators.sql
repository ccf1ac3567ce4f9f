-- Operators of the sweep that are not in sql/seeds/operator_category.csv, so that they count as Other.
SELECT DISTINCT unknown_operator.name
FROM unknown_operator
JOIN operator_time ON operator_time.operator = unknown_operator.name AND operator_time.kind = unknown_operator.kind
WHERE sweep_id = $sweep_id
ORDER BY name;
