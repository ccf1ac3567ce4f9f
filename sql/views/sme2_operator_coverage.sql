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
        sum(calls) AS calls,
        sum(self_ns) AS self_ns,
        CASE
            WHEN regexp_matches(data_type, '\b(PF32|PF16|PQS8)\b') THEN 'yes'
            WHEN regexp_matches(data_type, '\bQP8\b') THEN 'undecided'
            ELSE 'no'
        END AS sme2_by_name
    FROM _operator_session
    WHERE category IN ('Convolution', 'GEMM') AND coalesce(microkernel, 'GEMM') IN ('GEMM', 'IGEMM')
    GROUP BY ALL
),
-- QP8 reads alike with and without SME2: only the kernels that ran can tell.
qp8_kernel AS (
    SELECT
        sweep_id,
        device,
        model,
        precision,
        variant,
        runner_source,
        coalesce(sum(weight) FILTER (isa_family = 'SME2'), 0) / sum(weight) AS sme2_share
    FROM kernel
    JOIN _session USING (session_key)
    WHERE status = 'succeeded'
        AND evidence = 'executed'
        AND regexp_matches(operation, '^i?(gemm|matmul)')
        AND regexp_matches(data_type, '\b(qp8|qai8dxp)')
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
    CASE sme2_by_name WHEN 'yes' THEN 1 WHEN 'no' THEN 0 ELSE sme2_share END AS sme2_share,
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
LEFT JOIN qp8_kernel USING (sweep_id, device, model, precision, variant, runner_source);

COMMENT ON VIEW sme2_operator_coverage IS 'Whether each operator that SME2 could serve ran on it. These are matrix products and convolutions but depthwise ones: delegated with a GEMM or IGEMM kernel, or portable.';
COMMENT ON COLUMN sme2_operator_coverage.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN sme2_operator_coverage.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_operator_coverage.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN sme2_operator_coverage.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_operator_coverage.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN sme2_operator_coverage.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN sme2_operator_coverage.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN sme2_operator_coverage.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN sme2_operator_coverage.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_operator_coverage.operator IS 'Name of the operator without its number, layout, data types and kernel.';
COMMENT ON COLUMN sme2_operator_coverage.kind IS 'delegated or portable.';
COMMENT ON COLUMN sme2_operator_coverage.category IS 'Convolution or GEMM.';
COMMENT ON COLUMN sme2_operator_coverage.data_type IS 'Data types that a delegated operator''s name states, such as `PQS8, QC8W`.';
COMMENT ON COLUMN sme2_operator_coverage.microkernel IS 'Kind of kernel that a delegated operator''s name states: GEMM, IGEMM, DWConv, ...';
COMMENT ON COLUMN sme2_operator_coverage.calls_per_run IS 'Times that it runs in one run, on average.';
COMMENT ON COLUMN sme2_operator_coverage.time_ms IS 'Milliseconds of all its calls in one run, on average.';
COMMENT ON COLUMN sme2_operator_coverage.sme2_by_name IS 'yes (its data types are packed for SME2: PF32, PF16, PQS8), no, or undecided (QP8, which reads alike either way).';
COMMENT ON COLUMN sme2_operator_coverage.sme2_share IS 'Part of its time on SME2, 0 to 1: by name, and for QP8 by the samples of executed kernels of the same sweep, device, model, precision, variant and runner source; NULL while undecided.';
COMMENT ON COLUMN sme2_operator_coverage.likely_reason IS 'Why it is not on SME2: an inference from its name, no evidence.';
COMMENT ON COLUMN sme2_operator_coverage.sessions IS 'Sessions behind the row.';
COMMENT ON COLUMN sme2_operator_coverage.runs IS 'Measured runs behind the row, warm-up ones left out.';
COMMENT ON COLUMN sme2_operator_coverage.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
