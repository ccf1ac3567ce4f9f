-- Reads: _cell, _pair, _pair_accuracy
-- What SME2, and SME without SME2, gain: sessions with it compared with sessions without it that is equal to it in
-- everything else, see cell_overview. The unit is the session.
CREATE OR REPLACE VIEW sme2_speedup AS
WITH
side AS (
    SELECT
        pair,
        sweep_id,
        coalesce(any_value(sessions) FILTER (variant = 'sme2_on'), 0) AS sessions_on,
        coalesce(any_value(sessions) FILTER (variant = 'sme1'), 0) AS sessions_sme1,
        coalesce(any_value(sessions) FILTER (variant = 'sme2_off'), 0) AS sessions_off,
        any_value(cell_ms) FILTER (variant = 'sme2_on') AS time_on_ms,
        any_value(cell_ms) FILTER (variant = 'sme1') AS time_sme1_ms,
        any_value(cell_ms) FILTER (variant = 'sme2_off') AS time_off_ms
    FROM _cell
    GROUP BY pair, sweep_id
)
SELECT
    COLUMNS(_pair_name()),
    -- time_off_ms / time_on_ms: above 1 means that SME2 is faster. NULL if a side is missing or inaccurate, and on
    -- emulated devices.
    CASE WHEN reason IS NULL THEN time_off_ms / nullif(time_on_ms, 0) END AS speedup,
    -- Milliseconds with SME2, the time of its cell; NULL if there is none.
    time_on_ms,
    -- Milliseconds without either; NULL if there is none.
    time_off_ms,
    -- time_off_ms - time_on_ms; NULL if a side is missing or inaccurate, and on emulated devices.
    CASE WHEN reason IS NULL THEN time_off_ms - time_on_ms END AS saved_ms,
    -- time_off_ms / time_sme1_ms, in the same way.
    CASE WHEN reason_sme1 IS NULL THEN time_off_ms / nullif(time_sme1_ms, 0) END AS speedup_sme1,
    -- Milliseconds with SME and without SME2; NULL if there is none.
    time_sme1_ms,
    -- Why there is no speed-up: emulated or simulated (the device), or inaccurate on, inaccurate off or inaccurate both
    -- (the outputs with SME2, without it or on both sides, see cell_accuracy). NULL otherwise, also where a side is
    -- missing.
    reason,
    -- Sessions with SME2.
    sessions_on,
    -- Sessions with SME and without SME2.
    sessions_sme1,
    -- Sessions without either.
    sessions_off,
    runner_source,
    COLUMNS(_pair_content())
FROM side
JOIN _pair USING (pair, sweep_id)
JOIN _pair_accuracy USING (pair, sweep_id);
