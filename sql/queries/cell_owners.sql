-- Owners of the memory of the cells $cell_a and $cell_b at the peak.
SELECT
    owner,
    max(bytes) FILTER (cell = $cell_a) AS bytes_a,
    max(bytes) FILTER (cell = $cell_b) AS bytes_b,
    max(bytes) FILTER (cell = $cell_b) / nullif(max(bytes) FILTER (cell = $cell_a), 0) AS ratio
FROM memory_use
WHERE moment = 'peak' AND cell IN ($cell_a, $cell_b) AND bytes <> 0
GROUP BY owner, owner_place
ORDER BY owner_place;
