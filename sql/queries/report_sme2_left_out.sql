-- Operators that SME2 could run and that did not run on it although it was on, with the likely reason. The share is of
-- the time of all operators that SME2 could run, on the device where it is largest.
WITH
left_out AS (
    SELECT
        covered.model,
        covered.precision,
        operator || coalesce(' (' || data_type || ')', '') || coalesce(' ' || microkernel, '') AS operator,
        calls_per_run,
        CASE WHEN _has_times(covered.emulated) THEN time_ms / nullif(eligible_ms, 0) END AS share,
        likely_reason
    FROM sme2_operator_coverage AS covered
    JOIN sme2_coverage USING (cell)
    WHERE covered.sweep_id = $sweep_id AND covered.variant = 'sme2_on' AND likely_reason IS NOT NULL
)
SELECT
    model,
    precision,
    operator,
    max(calls_per_run) AS calls_per_run,
    max(share) AS share,
    likely_reason
FROM left_out
GROUP BY model, precision, operator, likely_reason
ORDER BY model, precision, share DESC NULLS LAST, calls_per_run DESC, operator;
