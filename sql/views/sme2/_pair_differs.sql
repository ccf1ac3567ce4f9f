CREATE OR REPLACE VIEW _pair_differs AS
SELECT pair, max(differs) AS differs
FROM _cell
LEFT JOIN _differs USING (cell_id, cell, sweep_id)
WHERE variant IN ('sme2_on', 'sme1', 'sme2_off')
GROUP BY pair;

COMMENT ON VIEW _pair_differs IS 'What tells each pair from others of the same name in its sweep. Private: may change with any version.';
