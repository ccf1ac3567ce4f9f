-- Reads: _operator_roof, _cell, session_cell, session_time, session_node
-- How near each operator comes to what its device can do: one row per operator instance of a cell. Its work is known
-- from the export (sources.json); its roof is that of the cell of the model `roof` in the same sweep (device_roof).
CREATE OR REPLACE VIEW operator_roofline AS
SELECT
    COLUMNS(_cell_name()),
    -- Name of the operator in the ETDump, with its number. The time of one that ends with [estimate] is an estimate of
    -- Core ML, of which only the sum was measured: it has neither work, roof nor interval.
    operator,
    -- Its name without number, layout, data types and kernel.
    operator_type,
    kind,
    -- Convolution, GEMM, Data Movement, Elementwise or Other (sql/seeds/operator_category.csv).
    category,
    data_type,
    microkernel,
    -- Calls in one run: the mean of the same runs as time_ms.
    calls_per_run,
    -- Milliseconds in one run: a part of the time of its cell.
    time_ms,
    -- time_ms as a share of Method::execute, from 0 to 1.
    time_share,
    -- Low end of the 95 % interval of the median of the sessions' times; NULL below six sessions and for
    -- estimates.
    bounds.low AS low_ms,
    -- High end of that interval.
    bounds.high AS high_ms,
    -- Milliseconds that the time may be off: 1 microsecond per call of a delegated operator, whose times are full
    -- microseconds, rounded down. An operator takes up to that much longer, and Unattributed that much less.
    resolution_ms,
    -- Multiply-accumulates in one run; NULL if unknown, as of dynamic sizes.
    macs,
    -- Bytes that it reads and writes in one run, each tensor once, by the width of its data type, weights included;
    -- NULL if unknown.
    bytes,
    -- Multiply-accumulates per byte.
    macs / nullif(bytes, 0) AS intensity,
    -- Multiply-accumulates per second, in 1e9; NULL on emulated devices.
    CASE WHEN _has_times(emulated) THEN macs / nullif(time_ms, 0) / 1e6 END AS gmac_per_s,
    -- Bytes per second, in 1e9; NULL on emulated devices.
    CASE WHEN _has_times(emulated) THEN bytes / nullif(time_ms, 0) / 1e6 END AS gb_per_s,
    -- The most that the device can do in the precision of the operator: see device_roof. NULL without a roof.
    peak_gmac_per_s,
    -- Bytes per second, in 1e9, at which the device reads as many bytes as one call needs; NULL without a roof.
    read_gb_per_s,
    -- Milliseconds that its work takes at the roof: by its products or by its bytes, whichever is more; NULL if the
    -- work or the roof is unknown.
    roof_ms,
    -- roof_ms / time_ms: 1 at the roof. It may be more, see docs/numbers.md.
    share,
    -- Milliseconds that could be won: time_ms above roof_ms.
    winnable_ms,
    -- compute or memory: which of them is the limit; overhead: too short to tell, less than 10 microseconds per call;
    -- unknown without a roof.
    bound,
    -- Clock of the fastest core after these sessions over that after the sessions of the roof; NULL if unknown.
    clock_ratio,
    -- Whether these clocks differ by more than 5 %: then ignore share.
    abs(clock_ratio - 1) > 0.05 AS clock_differs,
    chain_index,
    instruction_id,
    sessions,
    runs,
    COLUMNS(_cell_content())
FROM _operator_roof
JOIN _cell USING (cell_id, cell, sweep_id)
LEFT JOIN
    LATERAL (
        SELECT _median_bounds(list(self_ns / typical_runs / 1e6)) AS bounds
        FROM session_cell
        JOIN session_time USING (session_key)
        JOIN session_node USING (session_key)
        WHERE session_cell.cell_id = _operator_roof.cell_id
            AND session_node.node_id = _operator_roof.node_id
            AND NOT _is_estimate(_operator_roof.operator_type)
    ) AS bounded
    ON TRUE;
