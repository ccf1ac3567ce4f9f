-- The sides of a comparison, a and b, with inaccurate outputs, of the cells that its result is about.
SELECT arm
FROM cell
JOIN cell_accuracy USING (cell, sweep_id)
JOIN comparison_result ON cell.cell IN (cell_a, cell_b)
WHERE comparison_result.comparison = $comparison AND cell_accuracy.accuracy = 'inaccurate'
ORDER BY arm;
