-- Operators with SME2 off and on: those that SME2 could run, and any others above $heavy_share.
WITH
reason AS (
    SELECT cell_overview.pair, operator, microkernel, min(likely_reason) AS likely_reason
    FROM sme2_operator_coverage
    JOIN cell_overview USING (cell)
    WHERE sme2_operator_coverage.sweep_id = $sweep_id AND sme2_operator_coverage.variant = 'sme2_on'
    GROUP BY ALL
),
pair AS (
    SELECT
        named.* EXCLUDE (sweep_id),
        speed.operator,
        speed.microkernel,
        speed.data_types_off,
        speed.data_types_on,
        coalesce(speed.calls_on, speed.calls_off) AS calls_per_run,
        CASE WHEN without_times IS NULL THEN speed.time_off_ms END AS time_off_ms,
        CASE WHEN without_times IS NULL THEN speed.time_on_ms END AS time_on_ms,
        speed.speedup,
        speed.saved_ms,
        speed.below_resolution,
        CASE
            WHEN without_times IS NULL AND NOT speed.below_resolution
                THEN speed.time_on_ms / nullif(pair_total.time_on_ms, 0)
        END AS share_on,
        speed.kind = 'delegated' AND _sme2_could_serve(speed.category, speed.microkernel) AS is_eligible,
        CASE
            WHEN reason.likely_reason IS NOT NULL
                THEN { reason: reason.likely_reason, operator: speed.operator }
        END AS likely_reason
    FROM operator_speedup AS speed
    JOIN _named_pair AS named USING (pair, sweep_id)
    LEFT JOIN sme2_speedup AS pair_total USING (pair, sweep_id)
    LEFT JOIN reason
        ON reason.pair = speed.pair
            AND reason.operator = speed.operator
            AND reason.microkernel IS NOT DISTINCT FROM speed.microkernel
    WHERE sweep_id = $sweep_id
)
SELECT * EXCLUDE (place, microkernel) REPLACE (concat_ws(' ', operator, microkernel) AS operator)
FROM pair
WHERE is_eligible OR share_on > $heavy_share
ORDER BY place, coalesce(time_off_ms, time_on_ms) DESC NULLS LAST, calls_per_run DESC, pair.operator, microkernel;
