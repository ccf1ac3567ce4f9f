CREATE OR REPLACE VIEW _executed_samples AS
SELECT
    subject,
    sweep_id,
    sum(weight) AS samples,
    coalesce(sum(weight) FILTER (isa_family = 'SME2'), 0) AS sme2_samples,
    coalesce(sum(weight) FILTER (isa_family = 'SME'), 0) AS sme1_samples
FROM kernel
JOIN _session USING (session_key)
WHERE status = 'succeeded' AND evidence = 'executed'
GROUP BY subject, sweep_id;

COMMENT ON VIEW _executed_samples IS 'Samples of profile sessions of each content. Private: may change with any version.';
COMMENT ON COLUMN _executed_samples.samples IS 'All samples.';
COMMENT ON COLUMN _executed_samples.sme2_samples IS 'Samples in SME2 kernels.';
COMMENT ON COLUMN _executed_samples.sme1_samples IS 'Samples in SME kernels that are not SME2.';
