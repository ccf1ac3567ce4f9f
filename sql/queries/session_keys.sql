-- The keys of sessions, by their ids or by their cells: tables are in their order, so that the other queries read only
-- the part that has them.
SELECT session_key
FROM session
WHERE session_id IN (SELECT unnest($session_ids::VARCHAR[]))
UNION
SELECT session_key
FROM session_cell
JOIN cell USING (cell_id)
WHERE _is_one_of(cell, $cells::VARCHAR[]);
