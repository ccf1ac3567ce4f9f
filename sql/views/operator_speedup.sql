CREATE OR REPLACE VIEW operator_speedup AS
WITH
session_operator AS (
    SELECT
        session_key,
        operator,
        microkernel,
        kind,
        category,
        string_agg(DISTINCT data_type, ' | ' ORDER BY data_type) AS data_types,
        sum(calls) / any_value(runs) AS calls_per_run,
        sum(self_ns) / any_value(runs) / 1e6 AS time_ms
    FROM _operator_session
    WHERE category <> 'Unattributed'
    GROUP BY ALL
),
side AS (
    SELECT
        sweep_id,
        night,
        device,
        emulated,
        model,
        precision,
        mode,
        threads,
        runner_source,
        operator,
        microkernel,
        kind,
        category,
        max(data_types) FILTER (variant = 'sme2_on') AS data_types_on,
        max(data_types) FILTER (variant = 'sme2_off') AS data_types_off,
        median(calls_per_run) FILTER (variant = 'sme2_on') AS calls_on,
        median(calls_per_run) FILTER (variant = 'sme2_off') AS calls_off,
        median(time_ms) FILTER (variant = 'sme2_on') AS time_on_ms,
        median(time_ms) FILTER (variant = 'sme2_off') AS time_off_ms
    FROM session_operator
    JOIN _session USING (session_key)
    WHERE variant IN ('sme2_on', 'sme2_off')
    GROUP BY ALL
)
SELECT
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    mode,
    threads,
    runner_source,
    operator,
    microkernel,
    kind,
    category,
    data_types_on,
    data_types_off,
    calls_on,
    calls_off,
    time_on_ms,
    time_off_ms,
    CASE WHEN NOT emulated THEN time_off_ms / nullif(time_on_ms, 0) END AS speedup,
    CASE WHEN NOT emulated THEN time_off_ms - time_on_ms END AS saved_ms
FROM side
WINDOW pair AS (PARTITION BY sweep_id, night, device, emulated, model, precision, mode, threads, runner_source)
QUALIFY count(time_on_ms) OVER pair > 0 AND count(time_off_ms) OVER pair > 0;

COMMENT ON VIEW operator_speedup IS 'Each operator with SME2 beside the same without it. Operators are matched by name and kind of kernel, since numbers and data types differ between the two. Only what was measured both ways.';
COMMENT ON COLUMN operator_speedup.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN operator_speedup.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN operator_speedup.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN operator_speedup.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN operator_speedup.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN operator_speedup.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN operator_speedup.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN operator_speedup.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN operator_speedup.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
COMMENT ON COLUMN operator_speedup.operator IS 'Name of the operator without its number, layout, data types and kernel.';
COMMENT ON COLUMN operator_speedup.microkernel IS 'Kind of kernel that a delegated operator''s name states: GEMM, IGEMM, DWConv, ...';
COMMENT ON COLUMN operator_speedup.kind IS 'delegated, portable or other; method, delegate_call and operator_call for the unattributed time inside Method::execute itself and inside the calls of delegates and of operators.';
COMMENT ON COLUMN operator_speedup.category IS 'Convolution, GEMM, Data Movement, Elementwise or Other, by sql/seeds/operator_category.csv; Unattributed is the time of Method::execute that no operator accounts for.';
COMMENT ON COLUMN operator_speedup.data_types_on IS 'Data types that its names state with SME2.';
COMMENT ON COLUMN operator_speedup.data_types_off IS 'The same without SME2.';
COMMENT ON COLUMN operator_speedup.calls_on IS 'Calls per run with SME2.';
COMMENT ON COLUMN operator_speedup.calls_off IS 'The same without SME2.';
COMMENT ON COLUMN operator_speedup.time_on_ms IS 'Milliseconds per run with SME2: the median over sessions of their mean; NULL if it did not run.';
COMMENT ON COLUMN operator_speedup.time_off_ms IS 'The same without SME2.';
COMMENT ON COLUMN operator_speedup.speedup IS 'time_off_ms / time_on_ms: above 1 means that SME2 is faster. NULL where a side is missing and on emulated devices.';
COMMENT ON COLUMN operator_speedup.saved_ms IS 'time_off_ms - time_on_ms; NULL likewise.';
