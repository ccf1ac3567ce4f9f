-- Time and calls of each operator in the measured runs of each new session.
INSERT INTO session_node BY NAME
SELECT session_key, node_id, count(*) AS calls, sum(self_ns) AS self_ns
FROM new_event
JOIN new_run USING (run_id)
WHERE NOT is_warmup
GROUP BY session_key, node_id;
