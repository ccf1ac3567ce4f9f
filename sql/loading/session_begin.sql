-- Compute the sums over runs and events again, of all sessions whose events are there.
CREATE OR REPLACE TEMP VIEW new_run AS
SELECT * FROM run WHERE session_key NOT IN (SELECT session_key FROM thinned_session);
CREATE OR REPLACE TEMP VIEW new_event AS SELECT * FROM event WHERE run_id IN (SELECT run_id FROM new_run);
DELETE FROM typical_run WHERE run_id IN (SELECT run_id FROM new_run);
DELETE FROM run_summary WHERE run_id IN (SELECT run_id FROM new_run);
DELETE FROM session_summary WHERE session_key IN (SELECT session_key FROM new_run);
DELETE FROM session_node WHERE session_key IN (SELECT session_key FROM new_run);
