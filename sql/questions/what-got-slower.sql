-- What got slower since a date (--since; default: the newest night of each series), compared with the night before?
-- A series without a night before it is compared with its first night, see `compared_with`. `verdict` states whether
-- that is more than the series moves by without a change.
WITH
-- One figure per night: of the cell of a device that was measured last.
dated AS (
    SELECT
        *,
        night >= coalesce($since::DATE, max(night) OVER nights) AS is_after,
        NOT is_after OR night = min(night) OVER nights AS is_before
    FROM series_latency
    WHERE is_newest
        AND _has_times(emulated)
        AND _is_model(model, $model)
        AND ($device IS NULL OR device = $device)
        AND ($precision IS NULL OR precision = $precision)
    WINDOW nights AS (PARTITION BY series_id, device)
),
compared AS (
    SELECT
        series_id,
        device,
        model,
        precision,
        variant,
        threads,
        CASE WHEN bool_and(is_after) THEN 'its first night: none is older' ELSE 'the night before' END AS compared_with,
        max(night) FILTER (is_before) AS night_before,
        max(night) FILTER (is_after) AS night_after,
        arg_max(time_ms, night) FILTER (is_before) AS before_ms,
        arg_max(time_ms, night) FILTER (is_after) AS after_ms,
        arg_max(mad_ms, night) FILTER (is_before) AS before_mad_ms,
        arg_max(mad_ms, night) FILTER (is_after) AS after_mad_ms,
        arg_max(cell, night) FILTER (is_before) AS cell_before,
        arg_max(cell, night) FILTER (is_after) AS cell_after
    FROM dated
    GROUP BY series_id, device, model, precision, variant, threads
)
SELECT
    compared.device,
    compared.model,
    compared.precision,
    compared.variant,
    compared.threads,
    night_before,
    night_after,
    verdict,
    before_ms,
    after_ms,
    after_ms / nullif(before_ms, 0) AS ratio,
    before_mad_ms,
    after_mad_ms,
    compared_with,
    cell_before,
    cell_after
FROM compared
LEFT JOIN (SELECT series_id, device, night AS night_after, verdict FROM verdict)
    USING (series_id, device, night_after)
WHERE after_ms > before_ms
ORDER BY ratio DESC, compared.device, compared.model, compared.precision, compared.variant, compared.threads;
