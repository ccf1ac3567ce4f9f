-- Reads: kernel, session_cell, session, cell
-- Kernels of sessions of the same cell: those that ran (sampled, with their share) apart from those that XNNPACK only
-- selected.
CREATE OR REPLACE VIEW kernel_use AS
WITH
counted AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        name,
        evidence,
        isa_family,
        operation,
        data_type,
        isa,
        library,
        sum(weight)::BIGINT AS weight,
        count(DISTINCT session_key) AS sessions
    FROM kernel
    JOIN session_cell USING (session_key)
    JOIN session USING (session_key)
    JOIN cell USING (cell_id, sweep_id)
    WHERE status = 'succeeded'
    GROUP BY ALL
)
SELECT
    COLUMNS(_cell_name()),
    -- Name of the kernel or another function; `(unresolved)` for samples whose function has no name in its library.
    coalesce(name, '(unresolved)') AS kernel,
    -- executed: sampled by the runner while it ran. selected: chosen by XNNPACK, used or not; in mode selected for the
    -- model's operators, in mode trace by its log.
    evidence,
    -- Samples if executed; if selected, 1 or the lines of the log; without a name, all functions without one.
    weight,
    -- Part of all samples, unresolved ones included, 0 to 1; NULL if selected, which has no time.
    CASE
        WHEN evidence = 'executed' THEN weight / sum(weight) OVER (PARTITION BY cell_id, cell, sweep_id, evidence)
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
    sessions,
    runner_source,
    COLUMNS(_cell_content())
FROM counted
JOIN cell USING (cell_id, cell, sweep_id);
