-- The runs of a session in their order.
SELECT run_index, is_warmup, execute_ms
FROM run_latency
WHERE session_id = $session_id
ORDER BY run_index;
