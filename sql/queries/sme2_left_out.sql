-- Operators that SME2 could run and that did not run on it although it was on, with the likely reason. The share is of
-- the time of all operators that SME2 could run, on the device where it is largest.
SELECT
    covered.model,
    covered.precision,
    covered.operator || coalesce(' (' || data_type || ')', '') || coalesce(' ' || microkernel, '') AS operator,
    max(covered.calls_per_run) AS calls_per_run,
    max(time_ms / nullif(eligible_ms, 0)) FILTER (_has_times(covered.emulated)) AS share,
    { reason: likely_reason, operator: covered.operator } AS likely_reason
FROM sme2_operator_coverage AS covered
JOIN sme2_coverage USING (cell)
WHERE covered.sweep_id = $sweep_id AND covered.variant = 'sme2_on' AND likely_reason IS NOT NULL
GROUP BY ALL
ORDER BY covered.model, covered.precision, share DESC NULLS LAST, calls_per_run DESC, operator;
