-- The time of each operator in each module of the cells of a sweep, in the order of the program.
SELECT named.* EXCLUDE (place), part.* EXCLUDE (cell_id, cell, sweep_id, position)
FROM _time_part AS part
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE part.sweep_id = $sweep_id AND without_times IS NULL
ORDER BY named.place, position;
