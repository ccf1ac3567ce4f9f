CREATE OR REPLACE VIEW sme2_speedup AS
WITH
side AS (
    SELECT
        _session.pair,
        sweep_id,
        count(*) FILTER (_session.variant = 'sme2_on') AS sessions_on,
        count(*) FILTER (_session.variant = 'sme1') AS sessions_sme1,
        count(*) FILTER (_session.variant = 'sme2_off') AS sessions_off,
        median(median_ms) FILTER (_session.variant = 'sme2_on') AS median_on_ms,
        median(median_ms) FILTER (_session.variant = 'sme1') AS median_sme1_ms,
        median(median_ms) FILTER (_session.variant = 'sme2_off') AS median_off_ms
    FROM session_latency
    JOIN _session USING (session_id, sweep_id)
    WHERE runs > 0
    GROUP BY _session.pair, sweep_id
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
    median_on_ms,
    median_sme1_ms,
    median_off_ms,
    CASE WHEN reason IS NULL THEN median_off_ms / nullif(median_on_ms, 0) END AS speedup,
    CASE WHEN reason_sme1 IS NULL THEN median_off_ms / nullif(median_sme1_ms, 0) END AS speedup_sme1,
    CASE WHEN reason IS NULL THEN median_off_ms - median_on_ms END AS saved_ms,
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
COMMENT ON COLUMN sme2_speedup.median_on_ms IS 'Median of the medians of sessions with SME2; NULL if there is none.';
COMMENT ON COLUMN sme2_speedup.median_sme1_ms IS 'Median of the medians of sessions with SME and without SME2; NULL if there is none.';
COMMENT ON COLUMN sme2_speedup.median_off_ms IS 'Median of the medians of sessions without either; NULL if there is none.';
COMMENT ON COLUMN sme2_speedup.speedup IS 'median_off_ms / median_on_ms: above 1 means that SME2 is faster. NULL if a side is missing or inaccurate, and on emulated devices.';
COMMENT ON COLUMN sme2_speedup.speedup_sme1 IS 'median_off_ms / median_sme1_ms, in the same way.';
COMMENT ON COLUMN sme2_speedup.saved_ms IS 'median_off_ms - median_on_ms; NULL if a side is missing or inaccurate, and on emulated devices.';
COMMENT ON COLUMN sme2_speedup.reason IS 'Why there is no speed-up: the device is emulated, or outputs are inaccurate with SME2, without it, or both (see cell_accuracy). NULL otherwise, also where a side is missing.';
