-- Reads: _operator_cell, _sme_by_name, _cell, _product_kernel
-- Which kernels each delegated operator has: compiled into the runner, selected by XNNPACK, and executed. Operators and
-- kernels are matched by packed data type, so operators of one type share the calls. Kernels of XNNPACK have no names.
CREATE OR REPLACE VIEW operator_kernels AS
WITH
delegated AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        timed.operator,
        category,
        timed.data_type,
        timed.microkernel,
        CASE
            WHEN sme_by_name <> 'no' AND _sme2_could_serve(category, timed.microkernel)
                THEN _packed_as(timed.data_type)
        END AS packed_as,
        sum(calls_per_run) AS calls_per_run,
        sum(time_ms) AS time_ms
    FROM _operator_cell AS timed
    JOIN _sme_by_name AS by_name
        ON by_name.operator = timed.operator
            AND by_name.layout IS NOT DISTINCT FROM timed.layout
            AND by_name.data_type IS NOT DISTINCT FROM timed.data_type
            AND by_name.microkernel IS NOT DISTINCT FROM timed.microkernel
    WHERE kind = 'delegated'
    GROUP BY ALL
),
operator_of_cell AS (
    SELECT
        _cell.*,
        delegated.* EXCLUDE (cell_id, cell, sweep_id),
        CASE WHEN packed_as IS NOT NULL THEN count(*) OVER of_the_same_type END AS operators
    FROM delegated
    JOIN _cell USING (cell_id, cell, sweep_id)
    WINDOW of_the_same_type AS (PARTITION BY cell_id, cell, sweep_id, packed_as)
),
content AS (
    SELECT
        subject,
        sweep_id,
        bool_or(evidence IN ('compiled', 'counted')) AS is_counted,
        bool_or(evidence = 'executed') AS is_sampled,
        bool_or(evidence = 'selected') AS has_selected
    FROM _product_kernel
    GROUP BY subject, sweep_id
),
named AS (
    SELECT
        subject,
        sweep_id,
        packed_as,
        name,
        isa_family,
        bool_or(evidence IN ('compiled', 'counted')) AS is_compiled,
        bool_or(evidence = 'selected') AS is_selected,
        bool_or(evidence IN ('counted', 'executed')) AS is_executed,
        sum(weight / counted_executions) AS kernel_calls_per_run,
        sum(ns / counted_executions) / 1e6 AS kernel_time_ms
    FROM _product_kernel
    JOIN content USING (subject, sweep_id)
    WHERE packed_as IS NOT NULL AND NOT (is_counted AND evidence = 'executed')
    GROUP BY subject, sweep_id, packed_as, name, isa_family
),
executed AS (SELECT DISTINCT subject, sweep_id, packed_as FROM named WHERE is_executed),
-- An operator that called no kernel with a name in a counted session ran in kernels of XNNPACK.
matched AS (
    SELECT * FROM operator_of_cell JOIN named USING (subject, sweep_id, packed_as)
    UNION ALL BY NAME
    SELECT *, TRUE AS is_compiled, TRUE AS is_executed
    FROM operator_of_cell
    ANTI JOIN executed USING (subject, sweep_id, packed_as)
)
SELECT
    COLUMNS(_cell_name()),
    operator,
    category,
    data_type,
    microkernel,
    -- Calls of the operator in one run.
    calls_per_run,
    -- Milliseconds of the operator in one run; an emulated device has none.
    CASE WHEN _has_times(emulated) THEN time_ms END AS time_ms,
    -- Name of the kernel; `(unnamed)` for the kernels of XNNPACK, which its library does not name.
    coalesce(name, '(unnamed)') AS kernel,
    -- SME2, SME, NEON or other; NULL if unnamed.
    isa_family,
    -- Whether the runner has it; NULL without a session of mode counts.
    CASE WHEN is_counted THEN is_compiled END AS compiled,
    -- Whether XNNPACK selected it; NULL without a session of mode trace.
    CASE WHEN has_selected THEN is_selected END AS selected,
    -- Whether it was executed: counted, or sampled where nothing was counted; NULL without a session of mode counts or
    -- profile.
    CASE WHEN is_counted OR (is_sampled AND name IS NOT NULL) THEN is_executed END AS executed,
    -- Calls of the kernel in one run, of all operators that share it; NULL unless counted.
    CASE
        WHEN is_counted AND name IS NOT NULL THEN coalesce(kernel_calls_per_run, 0)
    END AS kernel_calls_per_run,
    -- Milliseconds of all threads in these calls; NULL unless counted, and on emulated devices.
    CASE WHEN _has_times(emulated) THEN kernel_time_ms END AS kernel_time_ms,
    -- Operators of the cell with this packed data type, which share the calls of its kernels; NULL if it is not packed.
    operators,
    runner_source,
    COLUMNS(_cell_content())
FROM matched
JOIN content USING (subject, sweep_id);
