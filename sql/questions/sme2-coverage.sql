-- How much of what SME2 could serve ran on it, by model? Emulated devices count calls only. Calls of kernels are those
-- of mode counts.
SELECT
    model,
    precision,
    device,
    emulated,
    sweep_id,
    threads,
    variant,
    sme_calls / nullif(eligible_calls, 0) AS sme_call_share,
    sme2_calls / nullif(eligible_calls, 0) AS sme2_call_share,
    CASE WHEN _has_times(emulated) THEN sme_share END AS sme_time_share,
    CASE WHEN _has_times(emulated) THEN proven_share END AS sme2_time_share,
    evidence,
    kernel_calls,
    sme2_kernel_calls,
    kernel_ms,
    sme2_kernel_ms,
    cell
FROM sme2_coverage
WHERE variant <> 'sme2_off'
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
ORDER BY model, precision, device, sweep_id, threads, variant, cell;
