-- The sessions of cells in their order, however they ended.
SELECT
    cell,
    session_id,
    status,
    reason_code,
    started_at,
    CASE WHEN _has_times(emulated) THEN session_time.execute_ns / typical_runs / 1e6 END AS time_ms,
    is_typical
FROM _session
LEFT JOIN session_time USING (session_key)
WHERE _is_one_of(cell, $cells::VARCHAR[])
ORDER BY started_at, session_id;
