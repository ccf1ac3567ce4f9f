CREATE OR REPLACE VIEW _executed_kernels AS
WITH
sampled AS (
    SELECT
        *,
        regexp_matches(operation, '^i?(gemm|matmul)') AND regexp_matches(data_type, '\b(qp8|qai8dxp)') AS is_qp8
    FROM kernel
    JOIN _session USING (session_key)
    WHERE status = 'succeeded' AND evidence = 'executed'
)
SELECT
    subject,
    sweep_id,
    sum(weight) AS samples,
    coalesce(sum(weight) FILTER (isa_family = 'SME2'), 0) AS sme2_samples,
    coalesce(sum(weight) FILTER (is_qp8 AND isa_family = 'SME2'), 0)
    / nullif(sum(weight) FILTER (is_qp8), 0) AS qp8_sme2_share
FROM sampled
GROUP BY subject, sweep_id;

COMMENT ON VIEW _executed_kernels IS 'What the samples of profile sessions show of SME2. Private: may change with any version.';
COMMENT ON COLUMN _executed_kernels.samples IS 'All samples.';
COMMENT ON COLUMN _executed_kernels.sme2_samples IS 'Samples in SME2 kernels.';
COMMENT ON COLUMN _executed_kernels.qp8_sme2_share IS 'Part of the samples in kernels of dynamic int8 that is SME2, 0 to 1; NULL if there are no such samples.';
