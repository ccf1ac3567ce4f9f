-- Reads: cell_accuracy
-- Why the times of a cell do not count although it ran.
CREATE OR REPLACE VIEW _inaccurate_cell AS
SELECT
    cell,
    -- The reason in words.
    'outputs of ' || inaccurate_sessions || ' of ' || sessions || ' sessions are too far from their references ('
    || concat_ws(
        ', ',
        _snr_text(snr_host_db, min_snr_host_db, 'same program on the host'),
        _snr_text(snr_db, min_snr_db, 'same precision'),
        _snr_text(snr_fp32_db, min_snr_fp32_db, 'fp32'),
        CASE WHEN first_difference IS NOT NULL THEN format('token {} differs', first_difference) END,
        CASE
            WHEN judged_top1 < min_top1
                THEN format('top-1 {:.1f} %, limit {:.1f} %', 100 * judged_top1::DOUBLE, 100 * min_top1::DOUBLE)
        END
    )
    || ')' AS inaccuracy
FROM cell_accuracy
WHERE accuracy = 'inaccurate';
