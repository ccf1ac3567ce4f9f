-- The verdicts on all figures of some series in a night; a series on a device is at the same place of two lists.
SELECT series_id, device, metric, verdict, ratio, low, high, value, baseline_value, backend
FROM series_verdict
JOIN series USING (series_id)
JOIN (
    SELECT DISTINCT unnest($series::VARCHAR[]) AS series_id, unnest($devices::VARCHAR[]) AS device
) AS requested USING (series_id, device)
WHERE night = $night
ORDER BY series_id, device, metric;
