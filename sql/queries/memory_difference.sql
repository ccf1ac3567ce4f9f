-- Owners of memory at the peak whose bytes differ by 1 % of the peak or more, for each pair of $cells_a and $cells_b.
WITH
sides AS (SELECT generate_subscripts($cells_a, 1) AS place, unnest($cells_a) AS cell_a, unnest($cells_b) AS cell_b),
peak AS (
    SELECT cell, owner, bytes, total_bytes
    FROM memory_use
    WHERE moment = 'peak' AND cell IN (SELECT unnest(list_concat($cells_a, $cells_b)))
)
SELECT
    place - 1 AS place,
    before.owner,
    before.bytes AS bytes_a,
    after.bytes AS bytes_b
FROM sides
JOIN peak AS before ON before.cell = cell_a
JOIN peak AS after ON after.cell = cell_b AND after.owner = before.owner
WHERE abs(bytes_b - bytes_a) >= 0.01 * before.total_bytes AND bytes_b != bytes_a
ORDER BY place, abs(bytes_b - bytes_a) DESC;
