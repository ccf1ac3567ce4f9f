-- The values of figures over the 30 nights up to each of some nights, as lists with a value for each of these nights.
-- A figure is a metric of a series on a device, at the same place of three lists.
WITH
requested AS (
    SELECT DISTINCT *
    FROM (
        SELECT
            unnest($series::VARCHAR[]) AS series_id,
            unnest($devices::VARCHAR[]) AS device,
            unnest($metrics::VARCHAR[]) AS metric
    )
),
shown AS (
    SELECT until, night
    FROM (SELECT DISTINCT unnest($nights::DATE[]) AS until)
    JOIN (SELECT DISTINCT night FROM series_verdict) AS nights ON night <= until
    QUALIFY row_number() OVER (PARTITION BY until ORDER BY night DESC) <= 30
),
measured AS (
    SELECT series_id, device, metric, night, value
    FROM series_verdict
    WHERE series_id IN (SELECT series_id FROM requested)
)
SELECT
    series_id,
    device,
    metric,
    until,
    list(night ORDER BY night) AS nights,
    list(value ORDER BY night) AS figures
FROM requested
CROSS JOIN shown
LEFT JOIN measured USING (series_id, device, metric, night)
GROUP BY series_id, device, metric, until
ORDER BY series_id, device, metric, until;
