-- The same as time_parts for some cells ($cells) of any sweeps.
SELECT
    model,
    device,
    _without_times(emulated, transport) AS without_times,
    precision,
    variant,
    threads,
    part.* EXCLUDE (cell_id, sweep_id, position)
FROM _time_part AS part
JOIN cell USING (cell_id, cell, sweep_id)
WHERE list_contains($cells::VARCHAR[], part.cell) AND _without_times(emulated, transport) IS NULL
ORDER BY part.cell, position;
