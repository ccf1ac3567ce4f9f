-- The time of each series on each device in the night $night, with those of its sessions, for other programs.
-- `left_out` is why it is not a result: emulated (simulated devices are, too) or inaccurate.
SELECT
    model,
    precision,
    variant,
    threads,
    device,
    night,
    series_latency.sweep_id,
    cell,
    time_ms,
    times_ms,
    backend,
    executorch_version,
    device_model,
    soc,
    CASE WHEN NOT _has_times(emulated) THEN 'emulated' WHEN accuracy = 'inaccurate' THEN 'inaccurate' END AS left_out
FROM series_latency
JOIN (
    SELECT cell, sweep_id, list(time_ms ORDER BY started_at) AS times_ms, any_value(accuracy) AS accuracy
    FROM session_latency
    WHERE night = $night
    GROUP BY cell, sweep_id
) AS sessions USING (cell, sweep_id)
JOIN (SELECT cell, sweep_id, soc FROM cell_overview) AS cells USING (cell, sweep_id)
WHERE is_newest AND night = $night AND NOT _is_roof(model)
ORDER BY model, precision, variant, threads, device, cell;
