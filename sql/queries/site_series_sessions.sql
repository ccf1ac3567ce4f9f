-- The time of every session of series of some devices that counts, and whether the time of its night is made from it.
SELECT
    series_id,
    device,
    session_id,
    night,
    started_at,
    session_time.execute_ns / typical_runs / 1e6 AS time_ms,
    is_typical
FROM _session
JOIN session_time USING (session_key)
WHERE device IN (SELECT unnest($devices::VARCHAR[])) AND series_id IS NOT NULL AND purpose IS NULL AND _has_times(emulated)
ORDER BY series_id, device, night, started_at, session_id;
