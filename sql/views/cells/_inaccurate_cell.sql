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
        first_difference: first_difference,
        judged_top1: judged_top1,
        min_top1: min_top1
    } AS inaccuracy
FROM cell_accuracy
WHERE accuracy = 'inaccurate';
