-- Reads: layer_value, session_cell, cell
-- How far the values inside a model are from eager PyTorch in the same precision on the same inputs, layer by layer
-- (mode numerics, emulated devices included). The program returns these values besides its outputs, so it is another
-- one than the measured program: what XNNPACK fuses into one operator is one layer.
CREATE OR REPLACE VIEW layer_drift AS
WITH
by_cell AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        layer,
        any_value(module) AS module,
        any_value(operator) AS operator,
        any_value(elements) AS elements,
        max(max_abs_error) AS max_abs_error,
        min(snr_db) AS snr_db,
        max(nonfinite_mismatches) AS nonfinite_mismatches,
        min(snr_fp32_db) AS snr_fp32_db,
        max(lost_fp32) AS lost_fp32,
        count(DISTINCT values_sha256) = 1 AS is_reproducible,
        count(*) AS sessions,
        max_by(values_sha256, session_key) AS values_sha256,
        max_by(sample, session_key) AS sample
    FROM layer_value
    JOIN session_cell USING (session_key)
    JOIN cell USING (cell_id)
    GROUP BY cell_id, cell, sweep_id, layer
)
SELECT
    COLUMNS(_cell_name()),
    layer,
    -- Path of its module, such as layers.0.attention; NULL for an operator outside any.
    module,
    -- The operator that computes it, the last of those fused into one, such as aten.relu.default.
    operator,
    elements,
    -- Signal-to-noise ratio against eager PyTorch in dB; NULL if both are equal (max_abs_error is 0) or eager is 0
    -- everywhere.
    snr_db,
    -- By how much the SNR is below that of the layer before: a fault shows first where this is large. NULL for the
    -- first layer and beside one that has no SNR.
    lag(snr_db) OVER (PARTITION BY cell, sweep_id ORDER BY layer) - snr_db AS snr_drop_db,
    -- Largest absolute difference of an element from eager PyTorch; NULL if no element is finite in both.
    max_abs_error,
    nonfinite_mismatches,
    -- Least SNR against the same layer of the fp32 model in dB: the cost of the recipe up to here; NULL for fp32, and
    -- for a layer that the fp32 model does not have.
    snr_fp32_db,
    -- Elements that are NaN or infinite and finite in the fp32 model, such as those beyond the range of fp16, the
    -- largest number; NULL as snr_fp32_db.
    lost_fp32,
    -- Sessions in mode numerics; of several, the worst figure.
    sessions,
    -- Whether all of them have the same bits.
    is_reproducible,
    -- Hash of the values on the device, of the last session.
    values_sha256,
    -- Up to 64 evenly spaced elements of them, the same ones in every session; NULL for NaN and infinity.
    sample,
    pair,
    COLUMNS(_cell_content())
FROM by_cell
JOIN cell USING (cell_id, cell, sweep_id);
