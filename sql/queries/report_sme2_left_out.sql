-- Operators that SME2 could serve and that did not run on it though it was on, with the likely reason. Their share is
-- the largest of any device, of the time of all that SME2 could serve.
WITH
left_out AS (
    SELECT
        model,
        precision,
        operator || coalesce(' (' || data_type || ')', '') || coalesce(' ' || microkernel, '') AS operator,
        kind,
        calls_per_run,
        CASE WHEN emulated IS NOT TRUE THEN time_ms / nullif(eligible_ms, 0) END AS share,
        likely_reason,
        device
    FROM sme2_operator_coverage
    JOIN sme2_coverage USING (sweep_id, device, emulated, model, precision, variant, mode, threads, runner_source)
    WHERE sweep_id = $sweep_id AND variant = 'sme2_on' AND likely_reason IS NOT NULL
)
SELECT
    model,
    precision,
    operator,
    kind,
    max(calls_per_run) AS calls_per_run,
    max(share) AS share,
    likely_reason,
    count(DISTINCT device) AS devices
FROM left_out
GROUP BY model, precision, operator, kind, likely_reason
ORDER BY model, precision, share DESC NULLS LAST, calls_per_run DESC, operator;
