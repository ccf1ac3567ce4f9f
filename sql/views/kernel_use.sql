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
    CASE WHEN evidence = 'executed' THEN sum(weight) / sum(sum(weight)) OVER (PARTITION BY cell, evidence) END AS share,
    CASE WHEN name IS NULL THEN 'unresolved' ELSE coalesce(isa_family, 'other') END AS isa_family,
    operation,
    data_type,
    isa,
    library,
    count(DISTINCT session_key) AS sessions,
    runner_source
FROM kernel
JOIN _session USING (session_key)
WHERE status = 'succeeded'
GROUP BY
    cell, sweep_id, night, device, emulated, model, precision, variant, mode, threads, runner_source,
    name, evidence, isa_family, operation, data_type, isa, library;

COMMENT ON VIEW kernel_use IS 'Kernels by what is measured alike: what ran (sampled, with its share) apart from what XNNPACK only selected.';
COMMENT ON COLUMN kernel_use.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN kernel_use.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN kernel_use.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN kernel_use.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN kernel_use.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN kernel_use.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN kernel_use.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN kernel_use.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN kernel_use.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN kernel_use.kernel IS 'Name of the kernel or other function; `(unresolved)` for samples whose function has no name in its library.';
COMMENT ON COLUMN kernel_use.evidence IS 'executed: the runners samples of what ran. selected: XNNPACKs own log of what it chose, used or not.';
COMMENT ON COLUMN kernel_use.weight IS 'Samples if executed, lines of the log if selected.';
COMMENT ON COLUMN kernel_use.share IS 'Part of all samples, 0 to 1, unresolved ones included; NULL if selected, which has no weight in time.';
COMMENT ON COLUMN kernel_use.isa_family IS 'SME2, SME, NEON, other, or unresolved.';
COMMENT ON COLUMN kernel_use.operation IS 'What the kernel does: gemm, igemm, dwconv, matmul, ...; NULL if the name is no kernel''s.';
COMMENT ON COLUMN kernel_use.data_type IS 'Data types in its name.';
COMMENT ON COLUMN kernel_use.isa IS 'Instruction set in its name, such as neonsme2.';
COMMENT ON COLUMN kernel_use.library IS 'Library that it is in; NULL if selected.';
COMMENT ON COLUMN kernel_use.sessions IS 'Sessions behind the row.';
COMMENT ON COLUMN kernel_use.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
