-- Pairs of cells with SME2 off and on, and the times of their sessions for an interval. Emulated devices have no times.
WITH
times AS (
    SELECT
        _session.pair,
        list(time_ms ORDER BY session_id) FILTER (_session.variant = 'sme2_on') AS times_on_ms,
        list(time_ms ORDER BY session_id) FILTER (_session.variant = 'sme2_off') AS times_off_ms
    FROM session_latency
    JOIN _session USING (session_id)
    WHERE _session.sweep_id = $sweep_id
        AND session_latency.sweep_id = $sweep_id -- or the times of all sweeps are computed
        AND runs > 0 AND _has_times(_session.emulated)
    GROUP BY _session.pair
)
SELECT
    named.* EXCLUDE (place),
    sessions_on,
    sessions_sme1,
    sessions_off,
    CASE WHEN without_times IS NULL THEN time_on_ms END AS time_on_ms,
    CASE WHEN without_times IS NULL THEN time_sme1_ms END AS time_sme1_ms,
    CASE WHEN without_times IS NULL THEN time_off_ms END AS time_off_ms,
    speedup,
    speedup_sme1,
    times_on_ms,
    times_off_ms,
    reason
FROM sme2_speedup
JOIN _named_pair AS named USING (pair, sweep_id)
LEFT JOIN times USING (pair)
WHERE sweep_id = $sweep_id
ORDER BY place;
