-- The contents whose sessions have no reference output, all modes but numerics together, emulated devices included.
SELECT
    cell.model,
    cell.device,
    cell.emulated IS TRUE AS emulated,
    cell.precision,
    cell.variant,
    cell.threads,
    cell.subject AS cell,
    max(differs) AS differs,
    sum(sessions)::BIGINT AS sessions
FROM cell_accuracy
JOIN cell USING (cell, sweep_id)
LEFT JOIN _differs USING (cell_id, sweep_id)
WHERE sweep_id = $sweep_id AND purpose IS NULL AND cell.mode != 'numerics'
GROUP BY ALL
HAVING sum(compared_sessions) = 0
ORDER BY ALL;
