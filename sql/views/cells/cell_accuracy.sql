-- Reads: cell_output, cell
-- Whether the outputs of each cell are near enough to eager PyTorch for its times to count: an inaccurate cell is never
-- called faster. The worst figure of all outputs and sessions that succeeded.
CREATE OR REPLACE VIEW cell_accuracy AS
SELECT
    COLUMNS(_cell_name()),
    -- inaccurate: an output of a session is beyond the limit of its recipe; accurate; not judged: compared without a
    -- limit; not compared: there is no reference.
    _accuracy(compared_sessions, judged_sessions, inaccurate_sessions) AS accuracy,
    sessions,
    compared_sessions,
    inaccurate_sessions,
    -- Least SNR against eager PyTorch in the same precision, in dB; NULL if all outputs are equal to it or no SNR is
    -- known.
    snr_db,
    min_snr_db,
    -- Least SNR against eager PyTorch in fp32, in dB; NULL for fp32 and if no SNR is known.
    snr_fp32_db,
    min_snr_fp32_db,
    -- Least SNR against the same program on the machine that exported it, in dB: does the device compute what the
    -- program computes? NULL if all outputs are equal to it, and if that machine could not run the program.
    snr_host_db,
    -- Its limit, which is tight: the cost of the recipe is on both sides.
    min_snr_host_db,
    -- Most elements of an inaccurate output that are NaN or infinite on one side only.
    nonfinite_mismatches,
    -- Why it is inaccurate, as the export found: what is random in the model, or what ExecuTorch computes wrong; NULL
    -- if unknown.
    cause,
    -- Number of the entry's samples, which the machine that exported the program executed; NULL without samples.
    samples,
    -- Samples with an output beyond a limit.
    samples_below,
    -- Least SNR of a sample, in dB, against fp32 or, for fp32, eager PyTorch; NULL if it is infinite or unknown.
    snr_samples_db,
    -- Its limit.
    min_snr_samples_db,
    -- File of the worst sample.
    worst_sample,
    -- Mean of the user's score over the samples; NULL without one.
    score,
    -- The least score that the entry in the sweep file states; NULL if it states none.
    min_score,
    max_abs_error,
    cosine,
    -- Least share of rows that choose the same class as a reference; see session_accuracy.
    top1_agreement,
    -- Least top1_agreement of the outputs that it applies to; NULL without it.
    judged_top1,
    -- The least top1_agreement that the entry in the sweep file states; NULL if it states none.
    min_top1,
    -- Number, from 0, of the first written token because of which it is inaccurate; NULL if there is none.
    first_difference,
    cell
FROM cell_output
JOIN cell USING (cell_id);
