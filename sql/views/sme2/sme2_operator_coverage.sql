CREATE OR REPLACE VIEW sme2_operator_coverage AS
SELECT
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    operator,
    kind,
    category,
    data_type,
    microkernel,
    calls_per_run,
    time_ms,
    sme2_by_name,
    sme2_share,
    CASE
        WHEN sme2_by_name = 'yes' OR (sme2_by_name = 'undecided' AND sme2_share > 0) THEN NULL
        WHEN kind = 'portable' THEN 'portable: XNNPACK did not get it'
        WHEN variant = 'sme2_off' THEN 'SME2 was switched off'
        WHEN sme2_by_name = 'undecided' AND sme2_share IS NULL
            THEN 'names of QP8 cannot tell, a session of mode profile can'
        WHEN operator = 'Fully Connected' AND data_type = 'F16'
            THEN 'XNNPACK keeps fp16 Fully Connected, and with it 1x1 convolutions, off SME2'
        ELSE 'XNNPACK has no SME2 kernel for these data types or this shape'
    END AS likely_reason,
    sessions,
    runs,
    runner_source,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM _sme2_operator;

COMMENT ON VIEW sme2_operator_coverage IS 'Whether each operator that SME2 could serve ran on it: matrix products and convolutions except depthwise ones, delegated with a GEMM or IGEMM kernel, or portable.';
COMMENT ON COLUMN sme2_operator_coverage.kind IS 'delegated or portable.';
COMMENT ON COLUMN sme2_operator_coverage.category IS 'Convolution or GEMM.';
COMMENT ON COLUMN sme2_operator_coverage.sme2_share IS 'Part of its time on SME2, 0 to 1. By name; if undecided by the sampled kernels of the same content. NULL if neither decides.';
COMMENT ON COLUMN sme2_operator_coverage.likely_reason IS 'Why it is not on SME2: an inference from its name, not evidence.';
