CREATE OR REPLACE VIEW operator_time AS
WITH
operator_total AS (
    SELECT
        cell,
        operator,
        kind,
        category,
        layout,
        data_type,
        microkernel,
        sum(calls) AS calls,
        sum(self_ns) AS self_ns
    FROM _operator_session
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
    calls / runs AS calls_per_run,
    self_ns / runs / 1e6 AS time_ms,
    self_ns / sum(self_ns) OVER (PARTITION BY cell) AS share,
    layout,
    data_type,
    microkernel,
    sessions,
    runs,
    runner_source
FROM operator_total
JOIN _cell USING (cell);

COMMENT ON VIEW operator_time IS 'Where the time of Method::execute goes, by operator and what its name tells, in the measured runs of all sessions that are measured alike. Shares of such a cell add up to 1.';
COMMENT ON COLUMN operator_time.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN operator_time.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN operator_time.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN operator_time.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN operator_time.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN operator_time.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN operator_time.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN operator_time.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN operator_time.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN operator_time.operator IS 'Name of the operator without its number, layout, data types and kernel.';
COMMENT ON COLUMN operator_time.kind IS 'delegated, portable or other; method, delegate_call and operator_call for the unattributed time inside Method::execute itself and inside the calls of delegates and of operators.';
COMMENT ON COLUMN operator_time.category IS 'Convolution, GEMM, Data Movement, Elementwise or Other, by sql/seeds/operator_category.csv; Unattributed is the time of Method::execute that no operator accounts for.';
COMMENT ON COLUMN operator_time.calls_per_run IS 'Times that it runs in one run, on average.';
COMMENT ON COLUMN operator_time.time_ms IS 'Milliseconds of all its calls in one run, on average.';
COMMENT ON COLUMN operator_time.share IS 'Part of Method::execute, 0 to 1.';
COMMENT ON COLUMN operator_time.layout IS 'Layout that a delegated operator''s name states, such as NHWC.';
COMMENT ON COLUMN operator_time.data_type IS 'Data types that a delegated operator''s name states, such as `PQS8, QC8W`.';
COMMENT ON COLUMN operator_time.microkernel IS 'Kind of kernel that a delegated operator''s name states: GEMM, IGEMM, DWConv, ...';
COMMENT ON COLUMN operator_time.sessions IS 'Sessions behind the row.';
COMMENT ON COLUMN operator_time.runs IS 'Measured runs behind the row, warm-up ones left out.';
COMMENT ON COLUMN operator_time.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
