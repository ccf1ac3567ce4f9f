-- Reads: kernel, kernel_counts, session_cell, session, cell
-- Kernels of sessions of the same cell: those that ran (counted, or sampled with their share) apart from those that
-- XNNPACK only selected.
CREATE OR REPLACE VIEW kernel_use AS
WITH
used AS (
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
        sum(weight) / sum(kernel_counts.executions) AS calls_per_run,
        sum(ns) / sum(kernel_counts.executions) / 1e6 AS time_ms,
        count(DISTINCT session_key) AS sessions
    FROM kernel
    JOIN session_cell USING (session_key)
    JOIN session USING (session_key)
    JOIN cell USING (cell_id, sweep_id)
    LEFT JOIN kernel_counts USING (session_key)
    WHERE status = 'succeeded'
    GROUP BY ALL
)
SELECT
    COLUMNS(_cell_name()),
    -- Name of the kernel or another function; `(unresolved)` for samples whose function has no name in its library.
    coalesce(name, '(unresolved)') AS kernel,
    -- counted: each call, in mode counts. executed: sampled while it ran, in mode profile. selected: chosen by XNNPACK,
    -- used or not, by its log in mode trace; older farms found those of the model in mode selected.
    evidence,
    -- Calls if counted, samples if executed; if selected, 1 or the lines of the log; without a name, all functions
    -- without one.
    weight,
    -- Calls in one run; NULL unless counted.
    calls_per_run,
    -- Milliseconds of all threads in the calls of one run, calls of other kernels inside them included; NULL unless
    -- counted, and on emulated devices.
    CASE WHEN _has_times(emulated) THEN time_ms END AS time_ms,
    -- Part of all samples, unresolved ones included, 0 to 1; NULL unless executed.
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
FROM used
JOIN cell USING (cell_id, cell, sweep_id);
