-- The delegates of each model on each device of $sweep_id, those of one precision and number of threads together, the
-- fastest that is accurate first, with the times of their sessions.
SELECT
    delegate_comparison.* EXCLUDE (taken),
    -- Of a single backend, the shares state it.
    CASE WHEN len(taken) > 1 THEN taken END AS taken,
    CASE WHEN emulated THEN _without_times(emulated, transport) END AS without_times,
    coalesce(times_ms, []) AS times_ms
FROM delegate_comparison
LEFT JOIN (SELECT cell, transport FROM cell WHERE sweep_id = $sweep_id) USING (cell)
LEFT JOIN (
    SELECT cell, list(execute_ns / typical_runs / 1e6 ORDER BY session_key) AS times_ms
    FROM cell
    JOIN session_cell USING (cell_id)
    JOIN session_time USING (session_key)
    WHERE sweep_id = $sweep_id AND _has_times(emulated)
    GROUP BY cell
)
    USING (cell)
WHERE sweep_id = $sweep_id
ORDER BY
    compared_model,
    emulated IS TRUE,
    device,
    precision <> 'fp32',
    precision,
    threads NULLS LAST,
    NOT _has_shortest_time(standing),
    delegate_comparison.time_ms NULLS LAST,
    variant,
    delegate;
