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
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    mode,
    threads,
    runner_source,
    sessions_on,
    sessions_sme1,
    sessions_off,
    time_on_ms,
    time_sme1_ms,
    time_off_ms,
    CASE WHEN reason IS NULL THEN time_off_ms / nullif(time_on_ms, 0) END AS speedup,
    CASE WHEN reason_sme1 IS NULL THEN time_off_ms / nullif(time_sme1_ms, 0) END AS speedup_sme1,
    CASE WHEN reason IS NULL THEN time_off_ms - time_on_ms END AS saved_ms,
    pair,
    pte_sha256,
    runner_sha256,
    serial,
    build,
    reason
FROM side
JOIN _pair USING (pair, sweep_id)
JOIN _pair_accuracy USING (pair, sweep_id);

COMMENT ON VIEW sme2_speedup IS 'What SME2, and SME without SME2, gain: sessions with it compared with sessions without it that is equal to it in everything else, see cell_overview. The unit is the session.';
COMMENT ON COLUMN sme2_speedup.sessions_on IS 'Sessions with SME2.';
COMMENT ON COLUMN sme2_speedup.sessions_sme1 IS 'Sessions with SME and without SME2.';
COMMENT ON COLUMN sme2_speedup.sessions_off IS 'Sessions without either.';
COMMENT ON COLUMN sme2_speedup.time_on_ms IS 'Milliseconds with SME2, the time of its cell; NULL if there is none.';
COMMENT ON COLUMN sme2_speedup.time_sme1_ms IS 'Milliseconds with SME and without SME2; NULL if there is none.';
COMMENT ON COLUMN sme2_speedup.time_off_ms IS 'Milliseconds without either; NULL if there is none.';
COMMENT ON COLUMN sme2_speedup.speedup IS 'time_off_ms / time_on_ms: above 1 means that SME2 is faster. NULL if a side is missing or inaccurate, and on emulated devices.';
COMMENT ON COLUMN sme2_speedup.speedup_sme1 IS 'time_off_ms / time_sme1_ms, in the same way.';
COMMENT ON COLUMN sme2_speedup.reason IS 'Why there is no speed-up: the device is emulated, or outputs are inaccurate with SME2, without it, or both (see cell_accuracy). NULL otherwise, also where a side is missing.';
