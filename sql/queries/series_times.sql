-- The times of series over the 30 nights up to a night, as lists with a value for each of these nights.
WITH
nights AS (
    SELECT DISTINCT night
    FROM series_verdict
    WHERE night <= $night
    ORDER BY night DESC
    LIMIT 30
),
requested AS (
    SELECT DISTINCT series_id, device
    FROM series_verdict
    WHERE night = $night AND series_id || device IN (SELECT unnest($series::VARCHAR[]))
)
SELECT series_id, device, list(series_verdict.value / 1e6 ORDER BY nights.night) AS times_ms
FROM requested
CROSS JOIN nights
LEFT JOIN (SELECT * FROM series_verdict WHERE metric = 'latency') AS series_verdict USING (series_id, device, night)
GROUP BY series_id, device
ORDER BY series_id, device;
