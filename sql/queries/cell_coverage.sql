-- The same as sme2_coverage for some cells ($cells) of any sweeps.
SELECT
    cell,
    cell.model,
    cell.device,
    _without_times(cell.emulated, transport) AS without_times,
    cell.precision,
    cell.variant,
    cell.threads,
    eligible_calls,
    sme_calls,
    CASE WHEN _has_times(cell.emulated) THEN name_share END AS name_share,
    CASE WHEN _has_times(cell.emulated) THEN proven_share END AS proven_share,
    sme2_calls,
    sme1_calls,
    evidence,
    executed_samples,
    CASE WHEN _has_times(cell.emulated) THEN executed_sme2_share END AS executed_sme2_share
FROM sme2_coverage
JOIN cell USING (cell, sweep_id)
WHERE list_contains($cells::VARCHAR[], cell) AND cell.variant <> 'sme2_off'
ORDER BY cell;
