-- Reads: _product_kernel
-- Counted calls of kernels that multiply matrices, by content.
CREATE OR REPLACE VIEW _counted_calls AS
SELECT
    subject,
    sweep_id,
    -- Calls in one run.
    sum(weight / counted_executions) AS kernel_calls,
    -- Part of kernel_calls in SME2 kernels.
    coalesce(sum(weight / counted_executions) FILTER (isa_family = 'SME2'), 0) AS sme2_kernel_calls,
    -- Milliseconds of all threads in these calls in one run.
    sum(ns / counted_executions) / 1e6 AS kernel_ms,
    -- Part of kernel_ms in SME2 kernels.
    coalesce(sum(ns / counted_executions) FILTER (isa_family = 'SME2'), 0) / 1e6 AS sme2_kernel_ms
FROM _product_kernel
WHERE evidence = 'counted'
GROUP BY subject, sweep_id;
