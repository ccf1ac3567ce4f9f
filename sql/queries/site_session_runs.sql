-- The runs of sessions in their order.
SELECT session_id, run_index, is_warmup, execute_ms
FROM run_latency
WHERE session_id IN (SELECT unnest($session_ids::VARCHAR[]))
ORDER BY session_id, run_index;
