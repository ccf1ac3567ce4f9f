-- Each model by number of threads and variant, where several numbers were measured, with the times of its sessions.
-- Emulated devices are left out.
WITH
times AS (
    SELECT
        _session.cell,
        list(time_ms ORDER BY session_id) AS times_ms,
        any_value(device.cores) AS cores,
        any_value(_session.launcher) AS launcher,
        any_value(try_cast(device.labels ->> 'sme_units' AS INTEGER)) AS sme_units
    FROM session_latency
    JOIN _session USING (session_id)
    JOIN device ON device.device_id = _session.device_id
    WHERE _session.sweep_id = $sweep_id
        AND session_latency.sweep_id = $sweep_id -- or the times of all sweeps are computed
        AND runs > 0 AND _has_times(_session.emulated)
    GROUP BY _session.cell
)
SELECT * REPLACE (coalesce(soc, 'unknown') AS soc)
FROM thread_scaling
JOIN times USING (cell)
WHERE sweep_id = $sweep_id AND _has_times(emulated)
ORDER BY model, device, precision <> 'fp32', precision, thread_group, variant, threads;
