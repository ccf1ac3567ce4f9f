-- The layers of each model with SME2 beside without it, emulated devices included; `cell` is that of the pair.
SELECT
    named.* EXCLUDE (place) REPLACE (NULL::VARCHAR AS differs),
    layer,
    module,
    operator,
    max_abs_error_on,
    max_abs_error_off,
    snr_on_db,
    snr_off_db,
    -- A loss counts if no later layer is as good again: small differences of large values lose SNR for themselves
    -- alone.
    lag(snr_on_db) OVER layers - max(if(max_abs_error_on = 0, 999, snr_on_db)) OVER rest AS drop_on_db,
    lag(snr_off_db) OVER layers - max(if(max_abs_error_off = 0, 999, snr_off_db)) OVER rest AS drop_off_db,
    coalesce(lost_fp32, 0) AS lost_fp32,
    snr_fp32_db,
    coalesce(nonfinite_mismatches_on, 0) + coalesce(nonfinite_mismatches_off, 0) AS nonfinite_mismatches,
    is_equal,
    sampled_difference
FROM sme2_layer_drift
JOIN _named_pair AS named USING (pair, sweep_id)
WHERE sweep_id = $sweep_id
WINDOW
    layers AS (PARTITION BY pair ORDER BY layer),
    rest AS (PARTITION BY pair ORDER BY layer ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)
ORDER BY
    named.model,
    without_times IS NOT NULL,
    named.device,
    named.threads,
    named.precision <> 'fp32',
    named.precision,
    pair,
    layer;
