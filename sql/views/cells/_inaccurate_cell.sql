CREATE OR REPLACE VIEW _inaccurate_cell AS
SELECT
    cell,
    'outputs of ' || inaccurate_sessions || ' of ' || sessions || ' sessions are too far from eager PyTorch ('
    || concat_ws(', ', _snr_text(snr_db, least_snr_db, 'same precision'), _snr_text(snr_fp32_db, least_snr_fp32_db, 'fp32'))
    || ')' AS inaccuracy
FROM cell_accuracy
WHERE accuracy = 'inaccurate';

COMMENT ON VIEW _inaccurate_cell IS 'Why the times of a cell do not count although it ran. Private: may change with any version.';
COMMENT ON COLUMN _inaccurate_cell.inaccuracy IS 'The reason in words.';
