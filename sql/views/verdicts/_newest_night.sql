CREATE OR REPLACE VIEW _newest_night AS
SELECT series_id, device, max(night) AS night
FROM series_verdict
WHERE metric = 'latency'
GROUP BY series_id, device;

COMMENT ON VIEW _newest_night IS 'What is_newest means in verdicts: the newest night of each series on each device; nights without a usable figure count too. Private: may change with any version.';
