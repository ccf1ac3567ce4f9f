-- Reads: cell_operator, cell, operator_category
-- Time of each operator in each cell.
CREATE OR REPLACE VIEW _operator_cell AS
SELECT
    cell_id,
    cell,
    sweep_id,
    kind,
    operator,
    layout,
    data_type,
    microkernel,
    -- Convolution, GEMM, Data Movement, Elementwise or Other (sql/seeds/operator_category.csv); Unattributed is the
    -- time of Method::execute that no operator accounts for.
    CASE
        WHEN _is_operator(kind) THEN coalesce(category, 'Other')
        ELSE 'Unattributed'
    END AS category,
    calls_per_run,
    -- Milliseconds in one run: a part of the time of the cell, a mean of the same runs of the same sessions (see
    -- session_latency).
    time_ns / 1e6 AS time_ms,
    share,
    -- Milliseconds that the time may be off: 1 microsecond per call of a delegated operator, whose times are full
    -- microseconds, rounded down. An operator takes up to that much longer, and Unattributed that much less.
    CASE WHEN kind = 'delegated' THEN calls_per_run * _delegate_clock_ms() ELSE 0 END AS resolution_ms
FROM cell_operator
JOIN cell USING (cell_id)
LEFT JOIN operator_category USING (operator, kind);
