-- Reads: cell, _differs
-- What the report calls the cells that are equal but for SME2, and where it lists them, as in _named_cell.
CREATE OR REPLACE VIEW _named_pair AS
WITH
named AS (
    SELECT
        pair,
        sweep_id,
        any_value(model) AS model,
        any_value(device) AS device,
        any_value(_without_times(emulated, transport)) AS without_times,
        any_value(precision) AS precision,
        any_value(threads) AS threads,
        max(differs) AS differs
    FROM cell
    LEFT JOIN _differs USING (cell_id, cell, sweep_id)
    WHERE variant IN ('sme2_on', 'sme1', 'sme2_off')
    GROUP BY pair, sweep_id
)
SELECT
    * EXCLUDE (without_times),
    -- emulated or simulated if times of the device mean nothing; NULL for any other device.
    without_times,
    -- Pairs are listed in this order: by model and device, fp32 first.
    row(model, without_times IS NOT NULL, device, threads, precision <> 'fp32', precision, differs, pair) AS place
FROM named;
