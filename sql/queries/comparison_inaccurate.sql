-- The sides of a comparison, a and b, with inaccurate outputs, by its cells.
SELECT DISTINCT arm
FROM cell
JOIN cell_accuracy USING (cell, sweep_id)
WHERE cell IN $cells AND accuracy = 'inaccurate'
ORDER BY arm;
