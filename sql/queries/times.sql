-- One row per cell of the sweep $sweep_id: its time, and those of its sessions. Emulated and simulated devices have no
-- times. `differs` distinguishes cells of one name.
SELECT
    device || coalesce(' (' || _without_times(emulated, transport) || ')', '') AS device,
    model,
    precision,
    variant,
    threads,
    sessions,
    runs,
    CASE WHEN _has_times(emulated) THEN round(cell_ms, 4) END AS "time ms",
    CASE WHEN _has_times(emulated) THEN round(mad_ms, 4) END AS "MAD ms",
    CASE WHEN _has_times(emulated) THEN times_ms END AS "95 % interval or range",
    differs
FROM _cell
JOIN (
    SELECT cell, sweep_id, median(mad_ms) AS mad_ms, list(time_ms) FILTER (time_ms IS NOT NULL) AS times_ms
    FROM session_latency
    GROUP BY cell, sweep_id
) USING (cell, sweep_id)
LEFT JOIN _differs USING (cell_id, cell, sweep_id)
WHERE sweep_id = $sweep_id
ORDER BY device, model, precision, variant, threads, differs
