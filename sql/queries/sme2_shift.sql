-- Where the time goes with SME2 off and on, with the shares of each session; of emulated devices the calls, since their
-- times mean nothing.
WITH
session_share AS (
    SELECT
        session_key,
        category,
        sum(time_ns) AS time_ns,
        sum(sum(time_ns)) OVER (PARTITION BY session_key) AS session_ns
    FROM _session_node
    WHERE session_key IN (SELECT session_key FROM session WHERE sweep_id = $sweep_id)
    GROUP BY session_key, category
),
of_pair AS (
    SELECT
        pair,
        category,
        list(time_ns / session_ns ORDER BY session_key) FILTER (variant = 'sme2_off') AS session_shares_off,
        list(time_ns / session_ns ORDER BY session_key) FILTER (variant = 'sme2_on') AS session_shares_on
    FROM session_share
    JOIN session_cell USING (session_key)
    JOIN cell USING (cell_id)
    WHERE session_ns > 0 AND purpose IS NULL
    GROUP BY pair, category
),
of_roof AS (
    SELECT
        pair,
        category,
        -- NULL if the roof without SME2 is unknown
        CASE
            WHEN bool_or(variant = 'sme2_off')
                THEN coalesce(sum(time_ms) FILTER (variant = 'sme2_off' AND bound = 'memory'), 0)
        END AS memory_off_ms,
        coalesce(sum(time_ms) FILTER (variant = 'sme2_on' AND bound = 'memory'), 0) AS memory_on_ms,
        sum(winnable_ms) FILTER (variant = 'sme2_on') AS winnable_on_ms
    FROM _operator_roof
    JOIN cell USING (cell_id, sweep_id)
    WHERE sweep_id = $sweep_id AND variant IN ('sme2_on', 'sme2_off') AND roof_ms IS NOT NULL
    GROUP BY pair, category
)
SELECT
    named.* EXCLUDE (place),
    category,
    CASE WHEN without_times IS NULL THEN share_off END AS share_off,
    CASE WHEN without_times IS NULL THEN share_on END AS share_on,
    change_points,
    CASE WHEN without_times IS NULL THEN time_off_ms END AS time_off_ms,
    CASE WHEN without_times IS NULL THEN time_on_ms END AS time_on_ms,
    change_ms,
    calls_off,
    calls_on,
    below_resolution,
    memory_off_ms,
    memory_on_ms,
    winnable_on_ms,
    CASE WHEN without_times IS NULL THEN session_shares_off END AS session_shares_off,
    CASE WHEN without_times IS NULL THEN session_shares_on END AS session_shares_on
FROM bottleneck_shift
JOIN _named_pair AS named USING (pair, sweep_id)
LEFT JOIN of_pair USING (pair, category)
LEFT JOIN of_roof USING (pair, category)
WHERE sweep_id = $sweep_id
    AND CASE
        WHEN without_times IS NULL THEN time_off_ms <> 0 OR time_on_ms <> 0
        ELSE category <> 'Unattributed'
    END
ORDER BY place, bottleneck_shift.time_off_ms DESC, category;
