-- Which delegate is the fastest whose outputs are accurate, on which device, and what do the others cost?
-- Without a sweep, of the newest that measured several delegates of a model on a device: the last started of a night.
-- No rows: no model was measured with several delegates; write `delegates: [xnnpack, openvino]` in a sweep file.
WITH
asked AS (
    SELECT
        *,
        regexp_replace(compared_model, '@[^@]*$', '') AS base,
        count(DISTINCT delegate) FILTER (outcome = 'measured') OVER (PARTITION BY sweep_id, device, base) > 1
            AS has_several
    FROM delegate_comparison
    JOIN (SELECT sweep_id, started_at FROM sweep_overview) USING (sweep_id)
    WHERE _has_times(emulated) AND _is_model(model, $model)
)
SELECT
    sweep_id,
    device,
    compared_model AS model,
    precision,
    variant,
    threads,
    delegate,
    standing,
    standing_of_model,
    later_s,
    time_ms,
    low_ms,
    high_ms,
    sessions,
    speedup,
    speedup_low,
    speedup_high,
    load_ms,
    first_load_ms,
    peak_memory_bytes,
    accuracy,
    snr_db,
    snr_fp32_db,
    operator_share,
    mac_share,
    reason,
    cell
FROM asked
WHERE ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND ($sweep IS NULL OR sweep_id = $sweep)
QUALIFY $sweep IS NOT NULL
    OR sweep_id = max_by(sweep_id, (has_several, coalesce(night, '-infinity'::DATE), started_at, sweep_id)) OVER (
        PARTITION BY device, base
    )
ORDER BY
    sweep_id,
    device,
    compared_model,
    precision <> 'fp32',
    precision,
    threads NULLS LAST,
    NOT _has_shortest_time(standing),
    time_ms NULLS LAST,
    variant,
    delegate;
