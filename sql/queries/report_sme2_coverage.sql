-- How much of what SME2 could run did run on SME, in cells with SME2 or with SME alone. Emulated devices have calls and
-- no times.
SELECT
    model,
    device,
    emulated IS TRUE AS emulated,
    precision,
    threads,
    variant,
    cell,
    differs,
    eligible_calls,
    sme_calls,
    CASE WHEN _has_times(emulated) THEN name_share END AS name_share,
    CASE WHEN _has_times(emulated) THEN proven_share END AS proven_share,
    sme2_calls,
    sme1_calls,
    evidence,
    executed_samples,
    executed_sme2_samples
FROM sme2_coverage
LEFT JOIN _differs USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND variant <> 'sme2_off'
ORDER BY model, emulated, device, threads, precision <> 'fp32', precision, variant DESC, differs, cell;
