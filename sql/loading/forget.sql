-- Remove the sessions whose session_key is in `forgotten`: every table with that column. What they shared with others
-- stays until forget_orphans.
INSERT INTO touched_cell
SELECT DISTINCT cell_id FROM session_cell WHERE session_key IN (SELECT session_key FROM forgotten);
-- From the night before, because that is the newest one if none is left of the forgotten ones.
INSERT INTO touched_series BY NAME
SELECT lost.series_id, coalesce(max(series_verdict.night), min(first_night)) AS night
FROM (
    SELECT series_id, device, min(night) AS first_night
    FROM _session
    WHERE session_key IN (SELECT session_key FROM forgotten)
    GROUP BY series_id, device
) AS lost
LEFT JOIN series_verdict
    ON series_verdict.series_id = lost.series_id
        AND series_verdict.device = lost.device
        AND series_verdict.night < first_night
GROUP BY lost.series_id, lost.device;
DELETE FROM event WHERE run_id IN (SELECT run_id FROM run WHERE session_key IN (SELECT session_key FROM forgotten));
DELETE FROM run WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM typical_run WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM run_summary WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session_summary WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session_node WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session_time WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session_statistic WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session_cell WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM thinned_session WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM device_conditions WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session_gate WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM accuracy WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM layer_value WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM kernel WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM kernel_counts WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM kernel_profile WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM load_ledger WHERE session_key IN (SELECT session_key FROM forgotten);
DELETE FROM session WHERE session_key IN (SELECT session_key FROM forgotten);
