-- The keys of sessions: tables are in their order, so that the other queries read only the part that has them.
SELECT session_key
FROM session
WHERE session_id IN (SELECT unnest($session_ids::VARCHAR[]));
