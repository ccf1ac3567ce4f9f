-- Operators with SME2 off and on: those that SME2 could run, and any others above 5 % (FLAGGED_SHARE of the report).
WITH
reason AS (
    SELECT device, model, precision, threads, runner_source, operator, microkernel, min(likely_reason) AS likely_reason
    FROM sme2_operator_coverage
    WHERE sweep_id = $sweep_id AND variant = 'sme2_on'
    GROUP BY ALL
),
pair AS (
    SELECT
        speed.model,
        speed.device,
        speed.emulated IS TRUE AS emulated,
        speed.precision,
        speed.threads,
        speed.runner_source,
        speed.operator,
        speed.microkernel,
        speed.data_types_off,
        speed.data_types_on,
        coalesce(speed.calls_on, speed.calls_off) AS calls_per_run,
        CASE WHEN _has_times(speed.emulated) THEN speed.time_off_ms END AS time_off_ms,
        CASE WHEN _has_times(speed.emulated) THEN speed.time_on_ms END AS time_on_ms,
        speed.speedup,
        speed.saved_ms,
        CASE WHEN _has_times(speed.emulated) THEN speed.time_on_ms / nullif(pair_total.median_on_ms, 0) END AS share_on,
        speed.kind = 'delegated' AND _sme2_could_serve(speed.category, speed.microkernel) AS is_eligible,
        reason.likely_reason
    FROM operator_speedup AS speed
    LEFT JOIN sme2_speedup AS pair_total
        ON pair_total.sweep_id = speed.sweep_id
            AND pair_total.device = speed.device
            AND pair_total.model = speed.model
            AND pair_total.precision = speed.precision
            AND pair_total.threads = speed.threads
            AND pair_total.runner_source = speed.runner_source
    LEFT JOIN reason
        ON reason.device = speed.device
            AND reason.model = speed.model
            AND reason.precision = speed.precision
            AND reason.threads = speed.threads
            AND reason.runner_source = speed.runner_source
            AND reason.operator = speed.operator
            AND reason.microkernel IS NOT DISTINCT FROM speed.microkernel
    WHERE speed.sweep_id = $sweep_id
)
SELECT *
FROM pair
WHERE is_eligible OR share_on > 0.05
ORDER BY
    model, emulated, device, threads, precision <> 'fp32', precision, runner_source, coalesce(time_off_ms, time_on_ms) DESC NULLS LAST,
    calls_per_run DESC, operator, microkernel;
