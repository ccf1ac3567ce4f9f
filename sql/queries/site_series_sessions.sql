-- The time of every session of a series on a device that counts, and whether the time of its night is made from it.
SELECT
    session_id,
    night,
    started_at,
    session_time.execute_ns / typical_runs / 1e6 AS time_ms,
    is_typical
FROM _session
JOIN session_time USING (session_key)
WHERE series_id = $series_id AND device = $device AND purpose IS NULL AND _has_times(emulated)
ORDER BY night, started_at, session_id;
