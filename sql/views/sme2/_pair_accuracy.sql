-- Reads: _cell, cell_output
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
    LEFT JOIN (
        SELECT cell_id, _accuracy(compared_sessions, judged_sessions, inaccurate_sessions) AS accuracy
        FROM cell_output
    ) USING (cell_id)
    WHERE _cell.variant IN ('sme2_on', 'sme1', 'sme2_off')
    GROUP BY pair, sweep_id
)
SELECT
    pair,
    sweep_id,
    -- emulated, simulated, or inaccurate with the sides whose outputs are: inaccurate on, off, or both.
    CASE
        WHEN without_times IS NOT NULL THEN without_times
        WHEN is_inaccurate_on AND is_inaccurate_off THEN 'inaccurate both'
        WHEN is_inaccurate_on THEN 'inaccurate on'
        WHEN is_inaccurate_off THEN 'inaccurate off'
    END AS reason,
    -- The same for SME without SME2, without the sides.
    CASE
        WHEN without_times IS NOT NULL THEN without_times
        WHEN is_inaccurate_sme1 OR is_inaccurate_off THEN 'inaccurate'
    END AS reason_sme1
FROM side;
