-- Cells, and what identifies each.
SELECT
    *,
    _without_times(emulated, transport) AS without_times,
    subject AS content,
    subject_pair AS content_pair
FROM cell
LEFT JOIN (
    SELECT cell, max_by(_commit(source_commit, source_author, source_is_dirty), started_at) AS source_commit
    FROM _session
    WHERE list_contains($cells::VARCHAR[], cell)
    GROUP BY cell
) AS commits USING (cell)
WHERE list_contains($cells::VARCHAR[], cell);
