CREATE OR REPLACE VIEW sme2_operator_coverage AS
WITH
eligible AS (
    SELECT
        cell,
        operator,
        kind,
        category,
        data_type,
        microkernel,
        sme2_by_name,
        sum(calls) AS calls,
        sum(self_ns) AS self_ns
    FROM _operator_session
    JOIN _sme2_by_name USING (name)
    WHERE _sme2_could_serve(category, microkernel)
    GROUP BY ALL
)
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
    calls / runs AS calls_per_run,
    self_ns / runs / 1e6 AS time_ms,
    sme2_by_name,
    -- The names of dynamic int8 are the same with and without SME2: only the kernels that ran decide.
    CASE sme2_by_name WHEN 'yes' THEN 1 WHEN 'no' THEN 0 ELSE qp8_sme2_share END AS sme2_share,
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
    runner_source
FROM eligible
JOIN _cell USING (cell)
LEFT JOIN _executed_kernels USING (sweep_id, device, model, precision, variant, runner_source);

COMMENT ON VIEW sme2_operator_coverage IS 'Whether each operator that SME2 could serve ran on it: matrix products and convolutions except depthwise ones, delegated with a GEMM or IGEMM kernel, or portable.';
COMMENT ON COLUMN sme2_operator_coverage.kind IS 'delegated or portable.';
COMMENT ON COLUMN sme2_operator_coverage.category IS 'Convolution or GEMM.';
COMMENT ON COLUMN sme2_operator_coverage.sme2_share IS 'Part of its time on SME2, 0 to 1. By name; if undecided by the sampled kernels of the same sweep, device, model, precision, variant and runner source. NULL if neither decides.';
COMMENT ON COLUMN sme2_operator_coverage.likely_reason IS 'Why it is not on SME2: an inference from its name, not evidence.';
