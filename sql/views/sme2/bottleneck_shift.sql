-- Reads: _category_cell, _pair
-- Where the time goes with and without SME2, by category. Only what was measured both ways.
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
        any_value(calls_per_run) FILTER (variant = 'sme2_on') AS on_calls,
        any_value(calls_per_run) FILTER (variant = 'sme2_off') AS off_calls,
        bool_or(time_ms < resolution_ms) AS below_resolution
    FROM _category_cell
    WHERE variant <> 'sme1'
    GROUP BY pair, sweep_id, category
)
SELECT
    COLUMNS(_pair_name()),
    category,
    -- Part of Method::execute with SME2, 0 to 1.
    coalesce(on_share, 0) AS share_on,
    -- Part of Method::execute without SME2, 0 to 1.
    coalesce(off_share, 0) AS share_off,
    -- Milliseconds in one run with SME2.
    coalesce(on_ms, 0) AS time_on_ms,
    -- Milliseconds in one run without SME2.
    coalesce(off_ms, 0) AS time_off_ms,
    -- share_on - share_off in percentage points: above 0 means that the category takes a larger share with SME2. NULL
    -- on emulated devices.
    CASE WHEN _has_times(emulated) THEN 100 * (share_on - share_off) END AS change_points,
    -- time_on_ms - time_off_ms: below 0 means that SME2 saved time. NULL on emulated devices.
    CASE WHEN _has_times(emulated) THEN time_on_ms - time_off_ms END AS change_ms,
    -- Calls in one run with SME2; all that emulated devices show.
    coalesce(on_calls, 0) AS calls_on,
    -- Calls in one run without SME2.
    coalesce(off_calls, 0) AS calls_off,
    -- Whether a side is below the resolution of its times, see category_share.resolution_ms.
    below_resolution,
    runner_source,
    COLUMNS(_pair_content())
FROM side
JOIN _pair USING (pair, sweep_id)
WINDOW both_sides AS (PARTITION BY pair, sweep_id)
QUALIFY count(on_ms) OVER both_sides > 0 AND count(off_ms) OVER both_sides > 0;
