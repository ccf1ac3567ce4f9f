-- Reads: _operator_cell, _cell, _pair, _pair_accuracy
-- Each operator with and without SME2. Operators are matched by name and kind of kernel, since numbers and data types
-- differ between the variants. Only what was measured both ways.
CREATE OR REPLACE VIEW operator_speedup AS
WITH
cell_total AS (
    SELECT
        pair,
        sweep_id,
        variant,
        operator,
        _operator_cell.microkernel,
        kind,
        category,
        nullif(array_to_string(list_sort(list_distinct(list(data_type))), ' | '), '') AS data_types,
        sum(calls_per_run) AS calls,
        sum(time_ms) AS time_ms,
        sum(time_ms) < sum(resolution_ms) AS below_resolution
    FROM _operator_cell
    JOIN _cell USING (cell_id, cell, sweep_id)
    WHERE category <> 'Unattributed' AND variant <> 'sme1'
    GROUP BY pair, sweep_id, variant, operator, _operator_cell.microkernel, kind, category
),
side AS (
    SELECT
        pair,
        sweep_id,
        operator,
        microkernel,
        kind,
        category,
        any_value(data_types) FILTER (variant = 'sme2_on') AS data_types_on,
        any_value(data_types) FILTER (variant = 'sme2_off') AS data_types_off,
        any_value(calls) FILTER (variant = 'sme2_on') AS calls_on,
        any_value(calls) FILTER (variant = 'sme2_off') AS calls_off,
        any_value(time_ms) FILTER (variant = 'sme2_on') AS time_on_ms,
        any_value(time_ms) FILTER (variant = 'sme2_off') AS time_off_ms,
        bool_or(below_resolution) AS below_resolution
    FROM cell_total
    GROUP BY pair, sweep_id, operator, microkernel, kind, category
)
SELECT
    COLUMNS(_pair_name()),
    operator,
    microkernel,
    kind,
    category,
    -- time_off_ms / time_on_ms: above 1 means that SME2 is faster. NULL if a side is missing, inaccurate or below the
    -- resolution, and on emulated devices.
    CASE
        WHEN reason IS NULL AND NOT below_resolution THEN time_off_ms / nullif(time_on_ms, 0)
    END AS speedup,
    -- Milliseconds in one run with SME2; NULL if it did not run.
    time_on_ms,
    -- Milliseconds in one run without SME2; NULL if it did not run.
    time_off_ms,
    -- time_off_ms - time_on_ms; NULL if a side is missing or inaccurate, and on emulated devices.
    CASE WHEN reason IS NULL THEN time_off_ms - time_on_ms END AS saved_ms,
    -- Whether its calls with or without SME2 take less than the resolution of their times, see
    -- operator_time.resolution_ms.
    below_resolution,
    -- Calls per run with SME2.
    calls_on,
    -- Calls per run without SME2.
    calls_off,
    -- Data types in its names with SME2.
    data_types_on,
    -- Data types in its names without SME2.
    data_types_off,
    runner_source,
    COLUMNS(_pair_content())
FROM side
JOIN _pair USING (pair, sweep_id)
JOIN _pair_accuracy USING (pair, sweep_id)
WINDOW both_sides AS (PARTITION BY pair, sweep_id)
QUALIFY count(time_on_ms) OVER both_sides > 0 AND count(time_off_ms) OVER both_sides > 0;
