-- The cells of one arm of a comparison: what $kind of thing it is, its $value, and the only sweep that counts,
-- $sweep_id (NULL: any). One figure per session, its time. Emulated devices have no times.
SELECT
    _cell.cell,
    _cell.sweep_id,
    _cell.device,
    _cell.transport,
    _cell.emulated IS TRUE AS emulated,
    _cell.model,
    _cell.precision,
    _cell.variant,
    _cell.threads,
    _cell.executions,
    _cell.warmup_executions,
    _cell.seed,
    _cell.pte_sha256,
    _cell.runner_sha256,
    _cell.executorch_version,
    _cell.serial,
    _cell.build,
    _cell.os_version,
    _cell.platform,
    _cell.device_model,
    _cell.soc,
    _cell.sme2,
    _cell.launcher,
    max(started_at) AS last_started_at,
    list(session_id ORDER BY session_id) AS session_ids,
    coalesce(list(epoch(started_at) ORDER BY session_id) FILTER (started_at IS NOT NULL), []) AS starts_s,
    coalesce(list(session_latency.time_ms ORDER BY session_id) FILTER (_has_times(_cell.emulated)), []) AS times_ms,
    any_value(noise_floor) AS noise_floor,
    coalesce(any_value(baseline_nights), 0) AS baseline_nights,
    any_value(accuracy) AS accuracy,
    any_value(verdict) AS verdict,
    any_value(judged.night) AS night,
    any_value(baseline_from) AS baseline_from
FROM session_latency
JOIN (
    SELECT _cell.*, backend
    FROM _cell
    LEFT JOIN series_night USING (cell_id)
    LEFT JOIN series USING (series_id)
) AS _cell USING (cell, sweep_id)
LEFT JOIN (
    SELECT cell, night, verdict, noise_floor, baseline_nights, baseline_from
    FROM verdict
) AS judged USING (cell)
WHERE session_latency.runs > 0
    AND ($sweep_id IS NULL OR sweep_id = $sweep_id)
    AND CASE $kind
        WHEN 'night' THEN _cell.night::VARCHAR
        WHEN 'sweep' THEN sweep_id
        WHEN 'variant' THEN _cell.variant
        WHEN 'device' THEN _cell.device
        WHEN 'model' THEN _cell.model
        WHEN 'precision' THEN _cell.precision
        WHEN 'threads' THEN _cell.threads::VARCHAR
        WHEN 'delegate' THEN _cell.backend
        WHEN 'executorch' THEN _cell.executorch_version
        WHEN 'runner' THEN _cell.runner_sha256
        WHEN 'runtime' THEN _runtime(_cell.model)
        WHEN 'cell' THEN cell
        WHEN 'session' THEN session_id
    END = $value
GROUP BY ALL
ORDER BY model, device, precision, variant, threads, last_started_at DESC NULLS LAST, cell DESC;
