CREATE OR REPLACE VIEW kernel_use AS
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
    coalesce(name, '(unresolved)') AS kernel,
    evidence,
    sum(weight)::BIGINT AS weight,
    CASE WHEN evidence = 'executed' THEN sum(weight) / sum(sum(weight)) OVER (PARTITION BY sweep_id, cell, evidence) END AS share,
    CASE WHEN name IS NULL THEN 'unresolved' ELSE coalesce(isa_family, 'other') END AS isa_family,
    operation,
    data_type,
    isa,
    library,
    count(DISTINCT session_key) AS sessions,
    runner_source,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM kernel
JOIN _session USING (session_key)
WHERE status = 'succeeded'
GROUP BY
    cell, sweep_id, night, device, emulated, model, precision, variant, mode, threads, runner_source,
    pte_sha256, runner_sha256, serial, build, name, evidence, isa_family, operation, data_type, isa, library;

COMMENT ON VIEW kernel_use IS 'Kernels of sessions of the same cell: those that ran (sampled, with their share) apart from those that XNNPACK only selected.';
COMMENT ON COLUMN kernel_use.kernel IS 'Name of the kernel or another function; `(unresolved)` for samples whose function has no name in its library.';
COMMENT ON COLUMN kernel_use.evidence IS 'executed: sampled by the runner while it ran. selected: chosen by XNNPACK, used or not; in mode selected for the model''s operators, in mode trace by its log.';
COMMENT ON COLUMN kernel_use.weight IS 'Samples if executed; if selected, 1 or the lines of the log; without a name, all functions without one.';
COMMENT ON COLUMN kernel_use.share IS 'Part of all samples, unresolved ones included, 0 to 1; NULL if selected, which has no time.';
COMMENT ON COLUMN kernel_use.isa_family IS 'SME2, SME, NEON, other or unresolved.';
COMMENT ON COLUMN kernel_use.operation IS 'What the kernel does: gemm, igemm, dwconv, matmul, ...; NULL if the name is not the name of a kernel.';
COMMENT ON COLUMN kernel_use.data_type IS 'Data types in the name of the kernel.';
COMMENT ON COLUMN kernel_use.isa IS 'Instruction set in the name of the kernel, such as neonsme2.';
COMMENT ON COLUMN kernel_use.library IS 'Library that contains it; NULL in mode trace.';
