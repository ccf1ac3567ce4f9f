-- Reads: kernel, kernel_counts, session, session_cell, cell
-- Kernels of each content that multiply matrices, by how far they are proven; a session of mode counts lists those that
-- its runner has. Kernels that pack data for SME2 have names of SME, too, and prove nothing.
CREATE OR REPLACE VIEW _product_kernel AS
WITH
listed AS (
    SELECT
        session_key,
        evidence,
        name,
        operation,
        data_type,
        isa_family,
        weight,
        ns
    FROM kernel
    UNION ALL
    SELECT
        session_key,
        'compiled',
        has.name,
        has.operation,
        has.data_type,
        has.isa_family,
        NULL,
        NULL
    FROM (SELECT session_key, unnest(compiled) AS has FROM kernel_counts)
)
SELECT
    subject,
    sweep_id,
    emulated,
    -- Data type in the names of operators: PF32, PF16, PQS8 or QP8; NULL for another one.
    _packed_as(data_type) AS packed_as,
    name,
    isa_family,
    -- counted, executed (sampled), selected, or compiled (into the runner).
    evidence,
    -- Calls if counted, samples if executed; if selected, 1 or the lines of the log; NULL if compiled.
    sum(weight) AS weight,
    -- Nanoseconds in all calls, of all threads together; NULL unless counted.
    sum(ns) AS ns,
    -- Executions that were counted; NULL unless counted.
    sum(kernel_counts.executions) AS counted_executions
FROM listed
JOIN session USING (session_key)
JOIN session_cell USING (session_key)
JOIN cell USING (cell_id, sweep_id)
LEFT JOIN kernel_counts ON kernel_counts.session_key = listed.session_key AND evidence = 'counted'
WHERE status = 'succeeded' AND regexp_matches(operation, '^i?(gemm|matmul)')
GROUP BY subject, sweep_id, emulated, _packed_as(data_type), name, isa_family, evidence;
