-- The runs of sessions in their order.
SELECT
    session_id,
    run_index,
    is_warmup,
    (start_ns - min(start_ns) OVER (PARTITION BY session_key)) / 1e6 AS start_ms,
    execute_ns / 1e6 AS execute_ms
FROM run
JOIN _timing_session USING (session_key)
WHERE _is_one_of(session_key, $session_keys::INTEGER[])
ORDER BY session_id, run_index;
