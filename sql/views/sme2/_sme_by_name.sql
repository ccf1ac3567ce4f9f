-- Reads: node
-- Whether the name of an operator shows SME2, by sql/seeds/sme_rule.csv; no if no row matches.
CREATE OR REPLACE VIEW _sme_by_name AS
SELECT
    operator,
    layout,
    data_type,
    microkernel,
    -- yes (the name shows a data type packed for SME, of either version), no, or undecided (the name is the same with
    -- and without SME).
    CASE
        WHEN bool_or(sme2 = 'yes') THEN 'yes'
        WHEN bool_or(sme2 = 'undecided') THEN 'undecided'
        ELSE 'no'
    END AS sme_by_name
FROM (SELECT DISTINCT operator, layout, data_type, microkernel FROM node) AS node_name
LEFT JOIN _sme_rule() ON regexp_matches(_operator_name(operator, layout, data_type, microkernel), pattern)
GROUP BY operator, layout, data_type, microkernel;
