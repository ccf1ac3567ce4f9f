CREATE OR REPLACE VIEW _named_cell AS
SELECT
    cell,
    sweep_id,
    model,
    device,
    _without_times(emulated, transport) AS without_times,
    precision,
    variant,
    threads,
    differs,
    row(model, emulated IS TRUE, device, threads, precision <> 'fp32', precision, variant, differs, cell) AS place
FROM cell
LEFT JOIN _differs USING (cell_id, cell, sweep_id);

COMMENT ON VIEW _named_cell IS 'What the report calls each cell, and where it lists it. Private: may change with any version.';
COMMENT ON COLUMN _named_cell.without_times IS 'emulated or simulated if times of the device mean nothing; NULL for any other device.';
COMMENT ON COLUMN _named_cell.place IS 'Cells are listed in this order: by model and device, fp32 first.';
