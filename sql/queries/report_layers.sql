-- The layers of each model with SME2 beside without it, emulated devices included; `cell` is that of the pair.
SELECT
    named.* EXCLUDE (sweep_id, place) REPLACE (NULL::VARCHAR AS differs),
    layer,
    module,
    operator,
    max_abs_error_on,
    max_abs_error_off,
    snr_on_db,
    snr_off_db,
    lag(snr_on_db) OVER layers - snr_on_db AS drop_on_db,
    lag(snr_off_db) OVER layers - snr_off_db AS drop_off_db,
    coalesce(nonfinite_mismatches_on, 0) + coalesce(nonfinite_mismatches_off, 0) AS nonfinite_mismatches,
    is_equal,
    sampled_difference
FROM sme2_layer_drift
JOIN _named_pair AS named USING (pair, sweep_id)
WHERE sweep_id = $sweep_id
WINDOW layers AS (PARTITION BY pair ORDER BY layer)
ORDER BY
    named.model, without_times IS NOT NULL, named.device, named.threads, named.precision <> 'fp32', named.precision, pair, layer;
