CREATE OR REPLACE VIEW bottleneck_shift AS
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
        category,
        sum(time_ms) FILTER (variant = 'sme2_on') AS time_on_ms,
        sum(time_ms) FILTER (variant = 'sme2_off') AS time_off_ms,
        sum(share) FILTER (variant = 'sme2_on') AS share_on,
        sum(share) FILTER (variant = 'sme2_off') AS share_off
    FROM category_share
    WHERE variant IN ('sme2_on', 'sme2_off')
    GROUP BY ALL
),
both_sides AS (
    SELECT * REPLACE (
        coalesce(time_on_ms, 0) AS time_on_ms,
        coalesce(time_off_ms, 0) AS time_off_ms,
        coalesce(share_on, 0) AS share_on,
        coalesce(share_off, 0) AS share_off
    )
    FROM side
    WINDOW pair AS (PARTITION BY sweep_id, night, device, emulated, model, precision, mode, threads, runner_source)
    QUALIFY count(time_on_ms) OVER pair > 0 AND count(time_off_ms) OVER pair > 0
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
    category,
    share_on,
    share_off,
    time_on_ms,
    time_off_ms,
    CASE WHEN NOT emulated THEN 100 * (share_on - share_off) END AS change_points,
    CASE WHEN NOT emulated THEN time_on_ms - time_off_ms END AS change_ms
FROM both_sides;

COMMENT ON VIEW bottleneck_shift IS 'Where the time goes with SME2 beside where it goes without it, by category. Only what was measured both ways.';
COMMENT ON COLUMN bottleneck_shift.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN bottleneck_shift.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN bottleneck_shift.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN bottleneck_shift.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN bottleneck_shift.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN bottleneck_shift.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN bottleneck_shift.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN bottleneck_shift.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN bottleneck_shift.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
COMMENT ON COLUMN bottleneck_shift.category IS 'Convolution, GEMM, Data Movement, Elementwise or Other, by sql/seeds/operator_category.csv; Unattributed is the time of Method::execute that no operator accounts for.';
COMMENT ON COLUMN bottleneck_shift.share_on IS 'Part of Method::execute with SME2, 0 to 1.';
COMMENT ON COLUMN bottleneck_shift.share_off IS 'The same without SME2.';
COMMENT ON COLUMN bottleneck_shift.time_on_ms IS 'Milliseconds per run with SME2, on average.';
COMMENT ON COLUMN bottleneck_shift.time_off_ms IS 'The same without SME2.';
COMMENT ON COLUMN bottleneck_shift.change_points IS 'share_on - share_off in percentage points: above 0 means that the category weighs more with SME2. NULL on emulated devices.';
COMMENT ON COLUMN bottleneck_shift.change_ms IS 'time_on_ms - time_off_ms: below 0 means that SME2 saved time. NULL on emulated devices.';
