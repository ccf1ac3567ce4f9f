CREATE OR REPLACE VIEW cell_accuracy AS
SELECT
    cell,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    CASE
        WHEN inaccurate_sessions > 0 THEN 'inaccurate'
        WHEN compared_sessions = 0 THEN 'not compared'
        WHEN judged_sessions = 0 THEN 'not judged'
        ELSE 'accurate'
    END AS accuracy,
    sessions,
    compared_sessions,
    inaccurate_sessions,
    max_abs_error,
    snr_db,
    least_snr_db,
    snr_fp32_db,
    least_snr_fp32_db,
    cosine,
    top1_agreement,
    snr_host_db,
    least_snr_host_db,
    least_top1,
    judged_top1,
    first_difference
FROM cell_output
JOIN cell USING (cell_id);

COMMENT ON VIEW cell_accuracy IS 'Whether the outputs of each cell are near enough to eager PyTorch for its times to count: an inaccurate cell is never called faster. The worst figure of all outputs and sessions that succeeded.';
COMMENT ON COLUMN cell_accuracy.accuracy IS 'inaccurate: an output of a session is beyond the limit of its recipe; accurate; not judged: compared without a limit; not compared: there is no reference.';
COMMENT ON COLUMN cell_accuracy.sessions IS 'Sessions that succeeded.';
COMMENT ON COLUMN cell_accuracy.compared_sessions IS 'Part of them with a reference.';
COMMENT ON COLUMN cell_accuracy.inaccurate_sessions IS 'Part of them with an output beyond its limit.';
COMMENT ON COLUMN cell_accuracy.max_abs_error IS 'Largest absolute difference from eager PyTorch in the same precision.';
COMMENT ON COLUMN cell_accuracy.snr_db IS 'Least SNR against eager PyTorch in the same precision, in dB; NULL if all outputs are equal to it or no SNR is known.';
COMMENT ON COLUMN cell_accuracy.least_snr_db IS 'Its limit.';
COMMENT ON COLUMN cell_accuracy.snr_fp32_db IS 'Least SNR against eager PyTorch in fp32, in dB; NULL for fp32 and if no SNR is known.';
COMMENT ON COLUMN cell_accuracy.least_snr_fp32_db IS 'Its limit.';
COMMENT ON COLUMN cell_accuracy.cosine IS 'Least cosine similarity with a reference, -1 to 1.';
COMMENT ON COLUMN cell_accuracy.top1_agreement IS 'Least share of rows that choose the same class as a reference; see session_accuracy.';
COMMENT ON COLUMN cell_accuracy.snr_host_db IS 'Least SNR against the same program on the machine that exported it, in dB: does the device compute what the program computes? NULL if all outputs are equal to it, and if that machine could not run the program.';
COMMENT ON COLUMN cell_accuracy.least_snr_host_db IS 'Its limit, which is tight: the cost of the recipe is on both sides.';
COMMENT ON COLUMN cell_accuracy.judged_top1 IS 'Least top1_agreement of the outputs that it applies to; NULL without it.';
COMMENT ON COLUMN cell_accuracy.first_difference IS 'Number, from 0, of the first written token because of which it is inaccurate; NULL if there is none.';
