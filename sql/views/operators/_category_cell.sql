CREATE OR REPLACE VIEW _category_cell AS
WITH
category_total AS (
    SELECT cell, category, sum(self_ns) AS self_ns
    FROM _operator_session
    GROUP BY cell, category
)
SELECT
    _cell.*,
    category,
    self_ns / runs / 1e6 AS time_ms,
    self_ns / sum(self_ns) OVER (PARTITION BY cell) AS share
FROM category_total
JOIN _cell USING (cell);

COMMENT ON VIEW _category_cell IS 'The rows of category_share with the numbers of their cell and pair. Private: may change with any version.';
