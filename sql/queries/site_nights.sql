-- Every night that was judged, the newest first: how many series got which verdict on their latency.
SELECT
    night,
    count(*) AS series,
    count(*) FILTER (verdict = 'regression') AS slower,
    count(*) FILTER (verdict = 'inaccurate') AS inaccurate,
    count(*) FILTER (verdict = 'suspected') AS suspected,
    count(*) FILTER (verdict = 'device slower') AS device_slower,
    count(*) FILTER (verdict IN ('improvement', 'device faster')) AS faster,
    count(*) FILTER (verdict = 'no change') AS same,
    count(*) FILTER (verdict IN ('insufficient data', 'invalid environment')) AS not_judged
FROM series_verdict
WHERE metric = 'latency'
GROUP BY night
ORDER BY night DESC;
