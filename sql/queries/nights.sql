-- Every night that was measured, the newest first: how many series got which verdict on their latency; none of a night
-- in which only emulated devices have results. What was measured later is not judged.
SELECT
    night,
    count(series_id) AS series,
    count(*) FILTER (verdict = 'regression') AS slower,
    count(*) FILTER (verdict = 'inaccurate') AS inaccurate,
    count(*) FILTER (verdict = 'failed') AS failed,
    count(*) FILTER (verdict = 'suspected') AS suspected,
    count(*) FILTER (verdict = 'device slower') AS device_slower,
    count(*) FILTER (verdict IN ('improvement', 'device faster')) AS faster,
    count(*) FILTER (verdict = 'suspected improvement') AS maybe_faster,
    count(*) FILTER (verdict = 'no change') AS same,
    count(*) FILTER (
        verdict IN ('unclear', 'new', 'insufficient data', 'invalid environment', 'measured later')
    ) AS not_judged
FROM (
    SELECT night FROM series_verdict
    UNION
    SELECT night FROM sweep SEMI JOIN (FROM session WHERE purpose IS NULL) USING (sweep_id) WHERE night IS NOT NULL
)
LEFT JOIN (
    SELECT * REPLACE (CASE WHEN measured_later IS NULL THEN verdict ELSE 'measured later' END AS verdict)
    FROM series_verdict
    WHERE metric = 'latency'
) AS judged USING (night)
GROUP BY night
ORDER BY night DESC;
