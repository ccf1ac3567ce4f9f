-- Reads: _cell, cell_accuracy
-- Why the sides of each pair have no speed-up although they were measured.
CREATE OR REPLACE VIEW _pair_accuracy AS
WITH
side AS (
    SELECT
        pair,
        sweep_id,
        any_value(_without_times(_cell.emulated, transport)) AS without_times,
        coalesce(any_value(accuracy) FILTER (_cell.variant = 'sme2_on') = 'inaccurate', FALSE) AS is_inaccurate_on,
        coalesce(any_value(accuracy) FILTER (_cell.variant = 'sme1') = 'inaccurate', FALSE) AS is_inaccurate_sme1,
        coalesce(any_value(accuracy) FILTER (_cell.variant = 'sme2_off') = 'inaccurate', FALSE) AS is_inaccurate_off
    FROM _cell
    LEFT JOIN cell_accuracy USING (cell, sweep_id)
    WHERE _cell.variant IN ('sme2_on', 'sme1', 'sme2_off')
    GROUP BY pair, sweep_id
)
SELECT
    pair,
    sweep_id,
    -- Why the session did not succeed, in one sentence; NULL if it did.
    CASE
        WHEN without_times IS NOT NULL THEN without_times || ' device'
        WHEN is_inaccurate_on AND is_inaccurate_off THEN 'inaccurate outputs with and without SME2'
        WHEN is_inaccurate_on THEN 'inaccurate outputs with SME2'
        WHEN is_inaccurate_off THEN 'inaccurate outputs without SME2'
    END AS reason,
    -- The same for SME without SME2.
    CASE
        WHEN without_times IS NOT NULL THEN without_times || ' device'
        WHEN is_inaccurate_sme1 OR is_inaccurate_off THEN 'inaccurate outputs'
    END AS reason_sme1
FROM side;
