-- Reads: series_verdict
-- What is_newest means in verdicts: the newest night of each series on each device; nights without a usable figure
-- count too.
CREATE OR REPLACE VIEW _newest_night AS
SELECT
    series_id,
    device,
    -- Date of the sweep; NULL for a loose ETDump.
    max(night) AS night
FROM series_verdict
WHERE metric = 'latency'
GROUP BY series_id, device;
