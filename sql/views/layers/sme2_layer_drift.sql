-- Reads: layer_drift, _pair
-- layer_drift with SME2 beside without it, on one device: whether SME2 changes what a layer returns. A side that was
-- not measured is NULL.
CREATE OR REPLACE VIEW sme2_layer_drift AS
WITH
side AS (
    SELECT
        pair,
        sweep_id,
        layer,
        any_value(module) AS module,
        any_value(operator) AS operator,
        any_value(elements) AS elements,
        any_value(max_abs_error) FILTER (variant = 'sme2_on') AS max_abs_error_on,
        any_value(max_abs_error) FILTER (variant = 'sme2_off') AS max_abs_error_off,
        any_value(snr_db) FILTER (variant = 'sme2_on') AS snr_on_db,
        any_value(snr_db) FILTER (variant = 'sme2_off') AS snr_off_db,
        any_value(nonfinite_mismatches) FILTER (variant = 'sme2_on') AS nonfinite_mismatches_on,
        any_value(nonfinite_mismatches) FILTER (variant = 'sme2_off') AS nonfinite_mismatches_off,
        min(snr_fp32_db) AS snr_fp32_db,
        max(lost_fp32) AS lost_fp32,
        any_value(values_sha256) FILTER (variant = 'sme2_on')
        = any_value(values_sha256) FILTER (variant = 'sme2_off') AS is_equal,
        any_value(sample) FILTER (variant = 'sme2_on') AS sample_on,
        any_value(sample) FILTER (variant = 'sme2_off') AS sample_off
    FROM layer_drift
    WHERE variant IN ('sme2_on', 'sme2_off')
    GROUP BY pair, sweep_id, layer
)
SELECT
    COLUMNS(_pair_name()),
    layer,
    -- Path of its module; NULL for an operator outside any.
    module,
    -- The operator that computes it, the last of those fused into one.
    operator,
    elements,
    -- Whether all bits are equal with and without SME2, from a hash of all elements.
    is_equal,
    -- Largest absolute difference between both, of up to 64 evenly spaced elements: the values themselves are not kept.
    list_max(
        -- NULL where an element of one side is not finite; list_max leaves it out.
        list_transform(list_zip(sample_on, sample_off), LAMBDA each: abs(each[1] - each[2]))
    )
        AS sampled_difference,
    -- SNR against eager PyTorch in dB with SME2; NULL if both are equal.
    snr_on_db,
    -- SNR against eager PyTorch in dB without SME2; NULL if both are equal.
    snr_off_db,
    -- Largest absolute difference from eager PyTorch with SME2.
    max_abs_error_on,
    -- Largest absolute difference from eager PyTorch without SME2.
    max_abs_error_off,
    -- Elements that are finite on one side only, with SME2.
    nonfinite_mismatches_on,
    -- Elements that are finite on one side only, without SME2.
    nonfinite_mismatches_off,
    -- Least SNR of both sides against the same layer of the fp32 model in dB: the cost of the recipe up to here; NULL
    -- for fp32, and for a layer that the fp32 model does not have.
    snr_fp32_db,
    -- Elements of both sides that are NaN or infinite and finite in the fp32 model, such as those beyond the range of
    -- fp16, the largest number; NULL as snr_fp32_db.
    lost_fp32,
    pair
FROM side
JOIN _pair USING (pair, sweep_id);
