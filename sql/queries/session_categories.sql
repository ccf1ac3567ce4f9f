-- Where the time of one run of sessions goes, by category, the largest first.
SELECT
    session_id,
    category,
    sum(time_ns) / 1e6 AS time_ms,
    sum(time_ns) / sum(sum(time_ns)) OVER (PARTITION BY session_id) AS share
FROM _session_node
JOIN _timing_session USING (session_key)
WHERE _is_one_of(session_key, $session_keys::INTEGER[])
GROUP BY session_id, category
ORDER BY session_id, time_ms DESC;
