-- Reads: kernel, _session
-- Kernels of sessions of the same cell: those that ran (sampled, with their share) apart from those that XNNPACK only
-- selected.
CREATE OR REPLACE VIEW kernel_use AS
SELECT
    COLUMNS(_cell_name()),
    -- Name of the kernel or another function; `(unresolved)` for samples whose function has no name in its library.
    coalesce(name, '(unresolved)') AS kernel,
    -- executed: sampled by the runner while it ran. selected: chosen by XNNPACK, used or not; in mode selected for the
    -- model's operators, in mode trace by its log.
    evidence,
    -- Samples if executed; if selected, 1 or the lines of the log; without a name, all functions without one.
    sum(weight)::BIGINT AS weight,
    -- Part of all samples, unresolved ones included, 0 to 1; NULL if selected, which has no time.
    CASE
        WHEN evidence = 'executed' THEN sum(weight) / sum(sum(weight)) OVER (PARTITION BY sweep_id, cell, evidence)
    END AS share,
    -- SME2, SME, NEON, other or unresolved.
    CASE WHEN name IS NULL THEN 'unresolved' ELSE coalesce(isa_family, 'other') END AS isa_family,
    -- What the kernel does: gemm, igemm, dwconv, matmul, ...; NULL if the name is not the name of a kernel.
    operation,
    -- Data types in the name of the kernel.
    data_type,
    isa,
    library,
    -- Sessions behind the row.
    count(DISTINCT session_key) AS sessions,
    runner_source,
    COLUMNS(_cell_content())
FROM kernel
JOIN _session USING (session_key)
WHERE status = 'succeeded'
GROUP BY
    cell, sweep_id, night, device, emulated, model, precision, variant, mode, threads, runner_source,
    pte_sha256, runner_sha256, serial, build, name, evidence, isa_family, operation, data_type, isa, library;
