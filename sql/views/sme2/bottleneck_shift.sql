CREATE OR REPLACE VIEW bottleneck_shift AS
WITH
side AS (
    SELECT
        pair,
        sweep_id,
        category,
        any_value(time_ms) FILTER (variant = 'sme2_on') AS on_ms,
        any_value(time_ms) FILTER (variant = 'sme2_off') AS off_ms,
        any_value(share) FILTER (variant = 'sme2_on') AS on_share,
        any_value(share) FILTER (variant = 'sme2_off') AS off_share,
        bool_or(time_ms < resolution_ms) AS below_resolution
    FROM _category_cell
    WHERE variant <> 'sme1'
    GROUP BY pair, sweep_id, category
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
    coalesce(on_share, 0) AS share_on,
    coalesce(off_share, 0) AS share_off,
    coalesce(on_ms, 0) AS time_on_ms,
    coalesce(off_ms, 0) AS time_off_ms,
    CASE WHEN _has_times(emulated) THEN 100 * (share_on - share_off) END AS change_points,
    CASE WHEN _has_times(emulated) THEN time_on_ms - time_off_ms END AS change_ms,
    below_resolution,
    pair,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM side
JOIN _pair USING (pair, sweep_id)
WINDOW both_sides AS (PARTITION BY pair, sweep_id)
QUALIFY count(on_ms) OVER both_sides > 0 AND count(off_ms) OVER both_sides > 0;

COMMENT ON VIEW bottleneck_shift IS 'Where the time goes with and without SME2, by category. Only what was measured both ways.';
COMMENT ON COLUMN bottleneck_shift.share_on IS 'Part of Method::execute with SME2, 0 to 1.';
COMMENT ON COLUMN bottleneck_shift.share_off IS 'Part of Method::execute without SME2, 0 to 1.';
COMMENT ON COLUMN bottleneck_shift.time_on_ms IS 'Milliseconds in one run with SME2.';
COMMENT ON COLUMN bottleneck_shift.time_off_ms IS 'Milliseconds in one run without SME2.';
COMMENT ON COLUMN bottleneck_shift.change_points IS 'share_on - share_off in percentage points: above 0 means that the category takes a larger share with SME2. NULL on emulated devices.';
COMMENT ON COLUMN bottleneck_shift.change_ms IS 'time_on_ms - time_off_ms: below 0 means that SME2 saved time. NULL on emulated devices.';
COMMENT ON COLUMN bottleneck_shift.below_resolution IS 'Whether a side is below the resolution of its times, see category_share.resolution_ms.';
