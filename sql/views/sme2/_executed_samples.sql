-- Reads: kernel, session, session_cell, cell
-- Samples of profile sessions of each content.
CREATE OR REPLACE VIEW _executed_samples AS
SELECT
    subject,
    sweep_id,
    -- All samples.
    sum(samples) AS samples,
    -- Samples in SME2 kernels.
    sum(sme2_samples) AS sme2_samples,
    -- Samples in SME kernels that are not SME2.
    sum(sme1_samples) AS sme1_samples
FROM (
    SELECT
        session_key,
        sum(weight) AS samples,
        coalesce(sum(weight) FILTER (isa_family = 'SME2'), 0) AS sme2_samples,
        coalesce(sum(weight) FILTER (isa_family = 'SME'), 0) AS sme1_samples
    FROM kernel
    WHERE evidence = 'executed'
    GROUP BY session_key
)
JOIN session USING (session_key)
JOIN session_cell USING (session_key)
JOIN cell USING (cell_id, sweep_id)
WHERE status = 'succeeded'
GROUP BY subject, sweep_id;
