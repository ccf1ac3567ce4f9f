-- The contents whose sessions have no reference output, all modes but numerics together, emulated devices included.
SELECT
    named.* EXCLUDE (cell, sweep_id, differs, place),
    subject AS cell,
    max(differs) AS differs,
    sum(sessions)::BIGINT AS sessions
FROM cell_accuracy
JOIN cell USING (cell, sweep_id)
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND purpose IS NULL AND cell.mode != 'numerics'
GROUP BY ALL
HAVING sum(compared_sessions) = 0
ORDER BY ALL;
