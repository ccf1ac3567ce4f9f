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
    *,
    row(model, without_times IS NOT NULL, device, threads, precision <> 'fp32', precision, differs, pair) AS place
FROM named;

COMMENT ON VIEW _named_pair IS 'What the report calls the cells that are equal but for SME2, and where it lists them, as in _named_cell. Private: may change with any version.';
COMMENT ON COLUMN _named_pair.place IS 'Pairs are listed in this order: by model and device, fp32 first.';
COMMENT ON COLUMN _named_pair.without_times IS 'Why times of its device mean nothing: emulated or simulated; NULL if they count.';
