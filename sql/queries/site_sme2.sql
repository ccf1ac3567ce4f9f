-- What SME2 gained in each pair of cells, both measured, of the newest night of each sweep's name, the most first.
WITH
newest AS (
    SELECT sweep_id
    FROM sweep
    WHERE night IS NOT NULL
    QUALIFY row_number() OVER (PARTITION BY name ORDER BY night DESC, sweep_id DESC) = 1
)
SELECT
    named.* EXCLUDE (sweep_id, place),
    time_off_ms,
    time_sme1_ms,
    time_on_ms,
    speedup,
    speedup_sme1,
    sessions_on,
    sessions_off,
    reason
FROM sme2_speedup
JOIN _named_pair AS named USING (pair, sweep_id)
WHERE sweep_id IN (FROM newest) AND without_times IS NULL AND sessions_on > 0 AND sessions_off > 0
ORDER BY speedup DESC NULLS LAST, place;
