CREATE OR REPLACE VIEW _timing_session AS
SELECT *
FROM _session
WHERE status = 'succeeded' AND mode = 'timing' AND purpose IS NULL;

COMMENT ON VIEW _timing_session IS 'The sessions that count as latency. Private: may change with any version.';
