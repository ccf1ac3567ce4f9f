-- Remove loose ETDumps whose bundle is being loaded, since it describes the same runs; `forgotten` holds their
-- session_key.
INSERT INTO touched_cell
SELECT DISTINCT cell_id FROM session_cell WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session_cell WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM event WHERE run_id IN (SELECT run_id FROM run WHERE session_key IN (SELECT session_key FROM forgotten));
DELETE FROM run WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM run_summary WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session_node WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM load_ledger WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM node WHERE model_id IN (
    SELECT model_id FROM session WHERE session_key IN (SELECT session_key FROM forgotten)
);
DELETE FROM model WHERE model_id IN (
    SELECT model_id FROM session WHERE session_key IN (SELECT session_key FROM forgotten)
);
DELETE FROM sweep WHERE sweep_id IN (
    SELECT sweep_id FROM session WHERE session_key IN (SELECT session_key FROM forgotten)
);
DELETE FROM session WHERE session_key IN (SELECT session_key FROM forgotten);
