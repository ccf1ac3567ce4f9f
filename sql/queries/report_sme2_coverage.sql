-- How much of what SME2 could serve ran on it, where it was on. On emulated devices calls count, and times do not.
SELECT
    model,
    device,
    emulated IS TRUE AS emulated,
    precision,
    threads,
    runner_source,
    eligible_calls,
    sme2_calls,
    CASE WHEN emulated IS NOT TRUE THEN name_share END AS name_share,
    CASE WHEN emulated IS NOT TRUE THEN proven_share END AS proven_share,
    executed_samples,
    executed_sme2_samples
FROM sme2_coverage
WHERE sweep_id = $sweep_id AND variant = 'sme2_on'
ORDER BY model, emulated, device, threads, precision <> 'fp32', precision, runner_source;
