-- Pairs of cells with SME2 off and on, and the medians of their sessions for an interval. Emulated devices have no times.
WITH
medians AS (
    SELECT
        _session.pair,
        list(median_ms ORDER BY session_id) FILTER (_session.variant = 'sme2_on') AS medians_on_ms,
        list(median_ms ORDER BY session_id) FILTER (_session.variant = 'sme2_off') AS medians_off_ms
    FROM session_latency
    JOIN _session USING (session_id)
    WHERE _session.sweep_id = $sweep_id AND runs > 0 AND _has_times(_session.emulated)
    GROUP BY _session.pair
)
SELECT
    named.* EXCLUDE (sweep_id, place),
    sessions_on,
    sessions_sme1,
    sessions_off,
    CASE WHEN without_times IS NULL THEN median_on_ms END AS median_on_ms,
    CASE WHEN without_times IS NULL THEN median_sme1_ms END AS median_sme1_ms,
    CASE WHEN without_times IS NULL THEN median_off_ms END AS median_off_ms,
    speedup,
    speedup_sme1,
    medians_on_ms,
    medians_off_ms,
    reason
FROM sme2_speedup
JOIN _named_pair AS named USING (pair, sweep_id)
LEFT JOIN medians USING (pair)
WHERE sweep_id = $sweep_id
ORDER BY place;
