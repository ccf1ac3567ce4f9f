-- Reads: node, operator_category
-- Each node of the operator tree by the name that verdicts on operators use.
CREATE OR REPLACE VIEW _named_node AS
SELECT
    node_id,
    kind,
    -- Name with layout, data types and kernel, without its number; Unattributed for the time of no operator. Estimated
    -- operators are one, since only their sum was measured.
    CASE
        WHEN _is_estimate(operator) THEN 'Core ML delegate'
        WHEN _is_operator(kind) THEN _operator_name(operator, layout, data_type, microkernel) ELSE 'Unattributed'
    END AS operator,
    -- Convolution, GEMM, Data Movement, Elementwise or Other (sql/seeds/operator_category.csv); Unattributed is the
    -- time of Method::execute that no operator accounts for.
    CASE WHEN _is_operator(kind) THEN coalesce(category, 'Other') ELSE 'Unattributed' END AS category
FROM node
LEFT JOIN operator_category USING (operator, kind);
