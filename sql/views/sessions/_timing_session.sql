-- Reads: _session
-- The sessions that count as latency.
CREATE OR REPLACE VIEW _timing_session AS
SELECT
    *
FROM _session
WHERE status = 'succeeded' AND mode = 'timing' AND purpose IS NULL;
