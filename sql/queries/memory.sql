-- Owners of the memory of each cell in timing at each moment; those without a byte at any moment are left out.
SELECT
    named.* EXCLUDE (sweep_id, place),
    moment,
    owner,
    bytes,
    total_bytes,
    planned_bytes,
    delegate_bytes,
    memory_use.sessions
FROM memory_use
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND bytes <> 0
ORDER BY place, moment_place, owner_place;
