-- Figures of the sessions of each cell in timing, in sweeps that state versions or run-time options: what a set of
-- options saves is seen beside the default. Emulated devices have no times.
SELECT
    _session.cell,
    _session.model,
    _session.device,
    _session.precision,
    _session.variant,
    _session.threads,
    _session.emulated,
    _session.pte_sha256,
    _session.runner_sha256,
    coalesce(list(time_ms * 1e6 ORDER BY session_id) FILTER (time_ms > 0), []) AS times_ns,
    coalesce(list(load_ns::DOUBLE ORDER BY session_id) FILTER (load_ns > 0), []) AS loads_ns,
    coalesce(list(first_load_ns::DOUBLE ORDER BY session_id) FILTER (first_load_ns > 0), []) AS first_loads_ns,
    coalesce(
        list(_session.model_peak_memory_bytes::DOUBLE ORDER BY session_id) FILTER (
            _session.model_peak_memory_bytes > 0
        ),
        []
    ) AS peaks_bytes,
    coalesce(
        list(_session.model_anonymous_bytes::DOUBLE ORDER BY session_id) FILTER (_session.model_anonymous_bytes > 0),
        []
    ) AS anonymous_bytes,
    coalesce(
        list(_session.model_file_bytes::DOUBLE ORDER BY session_id) FILTER (_session.model_file_bytes > 0),
        []
    ) AS file_bytes
FROM _session
JOIN (SELECT session_id, time_ms FROM session_latency WHERE sweep_id = $sweep_id) USING (session_id)
WHERE _session.sweep_id = $sweep_id
    AND (SELECT bool_or(_runtime(each.model) <> 'default') FROM _session AS each WHERE each.sweep_id = $sweep_id)
GROUP BY ALL
ORDER BY _session.model, _session.device, _session.precision, _session.threads, _session.variant, _session.cell;
