-- Which series are noisiest: how far do the sessions of a night lie apart, relative to their median?
SELECT
    night,
    device,
    model,
    precision,
    variant,
    threads,
    sessions,
    median_ms,
    mad_ms / nullif(median_ms, 0) AS relative_mad,
    (max_ms - min_ms) / nullif(median_ms, 0) AS relative_range,
    cell
FROM series_latency
WHERE sessions > 1
    AND _has_times(emulated)
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($since IS NULL OR night >= $since::DATE)
ORDER BY relative_mad DESC, relative_range DESC, night, device, model, cell
LIMIT 100;
