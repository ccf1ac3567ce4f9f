-- Reads: _operator_roof, _cell
-- How near a model comes to what its device can do: one row per cell with a roof, the sum of operator_roofline.
CREATE OR REPLACE VIEW model_roofline AS
WITH
summed AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        sum(macs) AS macs,
        sum(bytes) AS bytes,
        sum(roof_ms) AS roof_ms,
        sum(time_ms) FILTER (roof_ms IS NOT NULL) AS covered_ms,
        sum(winnable_ms) AS winnable_ms,
        sum(time_ms) FILTER (bound = 'compute') AS compute_bound_ms,
        sum(time_ms) FILTER (bound = 'memory') AS memory_bound_ms,
        sum(time_ms) FILTER (bound = 'overhead') AS overhead_ms,
        any_value(recipe_gmac_per_s) AS peak_gmac_per_s,
        any_value(read_speeds) AS read_speeds,
        any_value(clock_ratio) AS clock_ratio
    FROM _operator_roof
    GROUP BY cell_id, cell, sweep_id
)
SELECT
    COLUMNS(_cell_name()),
    -- Milliseconds of one run: the time of the cell.
    cell_ms AS time_ms,
    -- Milliseconds that the operators with known work take at the roof of the device.
    roof_ms,
    -- roof_ms / time_ms: the whole model's share of the roof.
    roof_ms / nullif(cell_ms, 0) AS share,
    -- Share of time_ms in operators whose work is known, from 0 to 1; the rest is in other operators and in none.
    covered_ms / nullif(cell_ms, 0) AS covered_share,
    -- Milliseconds that could be won in these operators.
    winnable_ms,
    -- Milliseconds in operators whose limit is computing.
    coalesce(compute_bound_ms, 0) AS compute_bound_ms,
    -- Milliseconds in operators whose limit is memory.
    coalesce(memory_bound_ms, 0) AS memory_bound_ms,
    -- Milliseconds in operators that are too short to tell.
    coalesce(overhead_ms, 0) AS overhead_ms,
    -- Multiply-accumulates of these operators in one run.
    macs,
    -- Bytes that these operators read and write in one run.
    bytes,
    -- The most that the device can do: see device_roof.
    peak_gmac_per_s,
    -- How fast it reads: see device_roof.
    read_speeds,
    clock_ratio,
    -- Whether the clocks differ by more than 5 %: then ignore share.
    abs(clock_ratio - 1) > 0.05 AS clock_differs,
    sessions,
    runs,
    COLUMNS(_cell_content())
FROM summed
JOIN _cell USING (cell_id, cell, sweep_id)
WHERE roof_ms IS NOT NULL;
