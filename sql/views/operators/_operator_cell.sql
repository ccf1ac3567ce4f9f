CREATE OR REPLACE VIEW _operator_cell AS
SELECT
    cell_id,
    sweep_id,
    kind,
    operator,
    layout,
    data_type,
    microkernel,
    CASE
        WHEN _is_operator(kind) THEN coalesce(category, 'Other')
        ELSE 'Unattributed'
    END AS category,
    calls_per_run,
    time_ns / 1e6 AS time_ms,
    share,
    CASE WHEN kind = 'delegated' THEN calls_per_run * _delegate_clock_ms() ELSE 0 END AS resolution_ms
FROM cell_operator
JOIN cell USING (cell_id)
LEFT JOIN operator_category USING (operator, kind);

COMMENT ON VIEW _operator_cell IS 'Time of each operator in each cell. Private: may change with any version.';
