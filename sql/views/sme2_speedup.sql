CREATE OR REPLACE VIEW sme2_speedup AS
WITH
side AS (
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
        count(*) FILTER (variant = 'sme2_on') AS sessions_on,
        count(*) FILTER (variant = 'sme2_off') AS sessions_off,
        median(median_ms) FILTER (variant = 'sme2_on') AS median_on_ms,
        median(median_ms) FILTER (variant = 'sme2_off') AS median_off_ms
    FROM session_latency
    WHERE variant IN ('sme2_on', 'sme2_off') AND runs > 0
    GROUP BY ALL
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
    sessions_off,
    median_on_ms,
    median_off_ms,
    CASE WHEN NOT emulated THEN median_off_ms / median_on_ms END AS speedup,
    CASE WHEN NOT emulated THEN median_off_ms - median_on_ms END AS saved_ms
FROM side;

COMMENT ON VIEW sme2_speedup IS 'What SME2 brings: sessions with it beside sessions without it on the same device, model, precision, threads and runner source, in the same sweep. The unit is the session.';
COMMENT ON COLUMN sme2_speedup.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN sme2_speedup.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_speedup.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN sme2_speedup.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_speedup.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN sme2_speedup.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN sme2_speedup.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN sme2_speedup.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_speedup.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_speedup.sessions_on IS 'Sessions with SME2.';
COMMENT ON COLUMN sme2_speedup.sessions_off IS 'Sessions without it.';
COMMENT ON COLUMN sme2_speedup.median_on_ms IS 'Median of the medians of sessions with SME2; NULL without any.';
COMMENT ON COLUMN sme2_speedup.median_off_ms IS 'The same without SME2.';
COMMENT ON COLUMN sme2_speedup.speedup IS 'median_off_ms / median_on_ms: above 1 means that SME2 is faster. NULL where a side is missing and on emulated devices, which are never ranked.';
COMMENT ON COLUMN sme2_speedup.saved_ms IS 'median_off_ms - median_on_ms; NULL likewise.';
