-- Reads: kernel, _session
-- Samples of profile sessions of each content.
CREATE OR REPLACE VIEW _executed_samples AS
SELECT
    subject,
    sweep_id,
    -- All samples.
    sum(weight) AS samples,
    -- Samples in SME2 kernels.
    coalesce(sum(weight) FILTER (isa_family = 'SME2'), 0) AS sme2_samples,
    -- Samples in SME kernels that are not SME2.
    coalesce(sum(weight) FILTER (isa_family = 'SME'), 0) AS sme1_samples
FROM kernel
JOIN _session USING (session_key)
WHERE status = 'succeeded' AND evidence = 'executed'
GROUP BY subject, sweep_id;
