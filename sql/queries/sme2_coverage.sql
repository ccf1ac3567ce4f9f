-- How much of what SME2 could run did run on SME, in cells with SME2 or with SME alone. Emulated devices have calls and
-- no times.
SELECT
    named.* EXCLUDE (place),
    eligible_calls,
    sme_calls,
    CASE WHEN without_times IS NULL THEN name_share END AS name_share,
    CASE WHEN without_times IS NULL THEN proven_share END AS proven_share,
    sme2_calls,
    sme1_calls,
    evidence,
    executed_samples,
    CASE WHEN without_times IS NULL THEN executed_sme2_share END AS executed_sme2_share
FROM sme2_coverage
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND named.variant <> 'sme2_off'
ORDER BY
    named.model, without_times IS NOT NULL, named.device, named.threads, named.precision <> 'fp32', named.precision,
    named.variant DESC, differs, cell;
