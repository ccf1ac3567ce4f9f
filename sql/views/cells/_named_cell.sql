-- Reads: cell, _differs
-- What the report calls each cell, and where it lists it.
CREATE OR REPLACE VIEW _named_cell AS
SELECT
    cell,
    sweep_id,
    model,
    device,
    -- emulated or simulated if times of the device mean nothing; NULL for any other device.
    _without_times(emulated, transport) AS without_times,
    precision,
    variant,
    threads,
    differs,
    -- Cells are listed in this order: by model and device, fp32 first.
    row(model, emulated IS TRUE, device, threads, precision <> 'fp32', precision, variant, differs, cell) AS place
FROM cell
LEFT JOIN _differs USING (cell_id, cell, sweep_id);
