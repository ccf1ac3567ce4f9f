-- The newest $nights nights that were measured, the newest first: their sweeps, how their sessions ended, and how many
-- series got which verdict on their latency.
WITH
measured AS (
    SELECT
        night,
        list(sweep_id ORDER BY measured_later IS NOT NULL, succeeded DESC, ended_at DESC) AS sweeps,
        sum(succeeded)::BIGINT AS succeeded,
        sum(failed)::BIGINT AS failed,
        sum(invalid)::BIGINT AS invalid
    FROM sweep_overview
    WHERE sweep_id IN (SELECT DISTINCT sweep_id FROM session WHERE purpose IS NULL) AND night IS NOT NULL
    GROUP BY night
    ORDER BY night DESC
    LIMIT cast($nights AS INTEGER)
),
judged AS (
    SELECT night, histogram(verdict) AS verdicts
    FROM series_verdict
    WHERE metric = 'latency' AND measured_later IS NULL
    GROUP BY night
)
SELECT night, sweeps, succeeded, failed, invalid, coalesce(verdicts, map()) AS verdicts
FROM measured
LEFT JOIN judged USING (night)
ORDER BY night DESC;
