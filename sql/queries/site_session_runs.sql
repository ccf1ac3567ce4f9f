-- The runs of sessions in their order.
SELECT session_id, run_index, is_warmup, execute_ms
FROM run_latency
WHERE list_contains($session_ids::VARCHAR[], session_id)
ORDER BY session_id, run_index;
