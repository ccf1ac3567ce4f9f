-- What got slower: in its newest night against its baseline, or, with --since, against the last night before a date?
-- Without a baseline, the night before is compared, and without a night before the date the first one, see
-- `compared_with`. What is `no change` against its baseline is left out.
WITH
judged AS (
    SELECT
        *,
        night >= $since::DATE AS is_after,
        NOT is_after OR night = min(night) OVER nights AS is_before
    FROM verdict
    WHERE time_ms IS NOT NULL
        AND NOT _is_roof(model)
        AND _is_model(model, $model)
        AND ($device IS NULL OR device = $device)
        AND ($precision IS NULL OR precision = $precision)
    WINDOW nights AS (PARTITION BY series_id, device)
),
compared AS (
    SELECT
        *,
        CASE
            WHEN $since IS NOT NULL THEN max(night) FILTER (is_before) OVER nights
            WHEN ratio IS NOT NULL THEN baseline_to
            ELSE lag(night) OVER (nights ORDER BY night)
        END AS night_before,
        CASE
            WHEN $since IS NOT NULL THEN arg_max(time_ms, night) FILTER (is_before) OVER nights
            WHEN ratio IS NOT NULL THEN before_ms
            ELSE lag(time_ms) OVER (nights ORDER BY night)
        END AS earlier_ms,
        CASE WHEN $since IS NULL AND ratio IS NOT NULL THEN after_ms ELSE time_ms END AS later_ms,
        CASE
            WHEN $since IS NOT NULL THEN arg_max(cell, night) FILTER (is_before) OVER nights
            WHEN ratio IS NOT NULL THEN baseline_cell
            ELSE lag(cell) OVER (nights ORDER BY night)
        END AS cell_before,
        CASE
            WHEN bool_and(is_after) OVER nights THEN 'its first night: none is older'
            WHEN $since IS NULL AND measured_again THEN 'the last good night, measured again'
            WHEN $since IS NULL AND ratio IS NOT NULL THEN 'its baseline'
            ELSE 'the night before'
        END AS compared_with
    FROM judged
    WINDOW nights AS (PARTITION BY series_id, device)
    QUALIFY night = max(night) OVER nights
)
SELECT
    compared.device,
    compared.model,
    compared.precision,
    compared.variant,
    compared.threads,
    night_before,
    compared.night AS night_after,
    verdict,
    earlier_ms AS before_ms,
    later_ms AS after_ms,
    later_ms / nullif(earlier_ms, 0) AS ratio,
    before.mad_ms AS before_mad_ms,
    after.mad_ms AS after_mad_ms,
    compared_with,
    cell_before,
    compared.cell AS cell_after
FROM compared
LEFT JOIN series_latency AS before ON before.cell = cell_before
LEFT JOIN series_latency AS after ON after.cell = compared.cell
WHERE later_ms > earlier_ms
    AND coalesce(is_after, TRUE)
    AND (verdict <> 'no change' OR compared_with = 'the night before')
ORDER BY ratio DESC, compared.device, compared.model, compared.precision, compared.variant, compared.threads;
