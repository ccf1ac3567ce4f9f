-- Reads: cell, _roof, cell_made_from
-- The roof that the time of a cell is compared with: of the same sweep, device, runner, precision, variant and threads.
CREATE OR REPLACE VIEW _cell_roof AS
WITH
placed AS (
    SELECT
        cell_id,
        _is_roof(model) AS is_roof,
        _product_recipe(precision) AS recipe,
        -- A struct, because two NULLs inside it are equal.
        {
            sweep_id: sweep_id,
            device: device,
            serial: serial,
            build: build,
            os_version: os_version,
            launcher: launcher,
            runner_sha256: runner_sha256,
            runner_source: runner_source,
            runtime: _runtime(model),
            variant: variant,
            threads: threads
        } AS place
    FROM cell
    WHERE mode = 'timing' AND purpose IS NULL AND _has_times(emulated)
),
measured AS (
    SELECT place, recipe, _roof.* EXCLUDE (cell_id)
    FROM placed
    JOIN _roof USING (cell_id)
    -- Of two numbers of executions in one sweep, the one with more sessions counts.
    QUALIFY row_number() OVER (PARTITION BY place, recipe ORDER BY sessions DESC, cell_id DESC) = 1
)
SELECT
    placed.cell_id,
    -- Of the products that the recipe of the cell converts.
    roof.peak_gmac_per_s AS recipe_gmac_per_s,
    -- Of those that it leaves in fp32; NULL if the sweep did not measure it.
    fp32_gmac_per_s,
    read_speeds,
    -- Clock of the cell over that of the roof; NULL if either is unknown.
    cell_made_from.clock_mhz / nullif(roof.clock_mhz, 0) AS clock_ratio
FROM placed
JOIN (
    SELECT *, max(peak_gmac_per_s) FILTER (recipe = 'fp32') OVER (PARTITION BY place) AS fp32_gmac_per_s
    FROM measured
) AS roof USING (place, recipe)
LEFT JOIN cell_made_from ON cell_made_from.cell_id = placed.cell_id
WHERE NOT is_roof;
