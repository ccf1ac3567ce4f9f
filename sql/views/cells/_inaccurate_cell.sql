-- Reads: cell_accuracy
-- Why the times of a cell do not count although it ran.
CREATE OR REPLACE VIEW _inaccurate_cell AS
SELECT
    cell,
    -- The figures with their limits; tasks/judge/verdicts/night.py describes them.
    {
        sessions: sessions,
        inaccurate_sessions: inaccurate_sessions,
        snr_host_db: snr_host_db,
        min_snr_host_db: min_snr_host_db,
        snr_db: snr_db,
        min_snr_db: min_snr_db,
        snr_fp32_db: snr_fp32_db,
        min_snr_fp32_db: min_snr_fp32_db,
        nonfinite_mismatches: nonfinite_mismatches,
        cause: cause,
        samples: samples,
        samples_below: samples_below,
        snr_samples_db: snr_samples_db,
        min_snr_samples_db: min_snr_samples_db,
        worst_sample: worst_sample,
        score: score,
        min_score: min_score,
        first_difference: first_difference,
        judged_top1: judged_top1,
        min_top1: min_top1
    } AS inaccuracy
FROM cell_accuracy
WHERE accuracy = 'inaccurate';
