CREATE OR REPLACE VIEW _pair_differs AS
SELECT pair, differs
FROM _pair;

COMMENT ON VIEW _pair_differs IS 'What tells each pair from others of the same name in its sweep. Private: may change with any version.';
