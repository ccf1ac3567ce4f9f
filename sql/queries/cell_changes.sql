-- What differs between the cells $cell_a and $cell_b, a row for each fact, as a verdict states it of two nights.
SELECT change.fact, change.before, change.after
FROM (
    SELECT unnest(_changes(a.facts, b.facts)) AS change
    FROM _cell_facts AS a
    JOIN _cell_facts AS b ON a.cell = $cell_a AND b.cell = $cell_b
);
