-- The sessions that decide about the verdict on their night, in nights without one. Emulated devices are never judged.
CREATE OR REPLACE TEMP VIEW session_to_judge AS
SELECT *
FROM _session
ANTI JOIN (SELECT series_id, device, night FROM series_verdict WHERE metric = 'latency')
    USING (series_id, device, night)
WHERE mode = 'timing'
    AND purpose IS NULL
    AND night IS NOT NULL
    AND _has_times(emulated)
    AND series_id IS NOT NULL
    -- Another attempt has a result, as the first one of a model that could be exported later; it may be in another
    -- series: until then, cases of the model and facts of the device may be unknown.
    AND session_id NOT IN (SELECT session_id FROM failed_session WHERE superseded AND status = 'failed');

-- The series on devices that have nights without a verdict, each with the first night to judge. That is its first night
-- of all where no state of before the first one was kept of each of its figures.
CREATE OR REPLACE TEMP TABLE series_to_judge AS
WITH
unjudged AS (
    SELECT series_id, device, min(night) AS first_night
    FROM session_to_judge
    GROUP BY series_id, device
),
stateless AS (
    SELECT DISTINCT series_id, device
    FROM series_verdict
    JOIN unjudged USING (series_id, device)
    LEFT JOIN (
        SELECT series_id, device, metric, min(night) AS state_night FROM series_state GROUP BY series_id, device, metric
    ) USING (series_id, device, metric)
    WHERE night < first_night AND coalesce(state_night >= first_night, TRUE)
)
SELECT
    unjudged.series_id,
    unjudged.device,
    CASE WHEN stateless.series_id IS NULL THEN first_night ELSE DATE '0001-01-01' END AS first_night
FROM unjudged
LEFT JOIN stateless ON stateless.series_id = unjudged.series_id AND stateless.device = unjudged.device;
