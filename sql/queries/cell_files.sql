-- The key of the export of the cells $cell_a and $cell_b, whose .pte files differ and were exported by the farm.
SELECT a.export_key AS key_a, b.export_key AS key_b
FROM _cell_export AS a
JOIN _cell_export AS b ON a.cell = $cell_a AND b.cell = $cell_b
WHERE a.export_key != b.export_key;
