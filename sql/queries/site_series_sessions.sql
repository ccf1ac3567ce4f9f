-- The time of every session of a device's series that counts, and whether the time of its night is made from it.
SELECT
    series_id,
    session_id,
    night,
    started_at,
    session_time.execute_ns / typical_runs / 1e6 AS time_ms,
    is_typical
FROM _session
JOIN session_time USING (session_key)
WHERE device = $device AND series_id IS NOT NULL AND purpose IS NULL AND _has_times(emulated)
ORDER BY series_id, night, started_at, session_id;
