CREATE OR REPLACE VIEW device_wait AS
SELECT
    sweep_id,
    night,
    device,
    emulated,
    limit_name,
    count(*) AS sessions,
    count(*) FILTER (waited_s > 0) AS waited_sessions,
    count(*) FILTER (is_outside) AS outside_sessions,
    count(*) FILTER (value IS NULL) AS unread_sessions,
    sum(waited_s) AS waited_s,
    max(waited_s) AS longest_s,
    CASE WHEN starts_with(limit_name, 'min_') THEN min(worst) ELSE max(worst) END AS worst,
    CASE WHEN starts_with(limit_name, 'min_') THEN max(bound) ELSE min(bound) END AS bound,
    mode(note) AS note
FROM session_readiness
GROUP BY sweep_id, night, device, emulated, limit_name;

COMMENT ON VIEW device_wait IS 'How long each device of a sweep waited for each limit before its sessions, those that are discarded included.';
COMMENT ON COLUMN device_wait.sessions IS 'Sessions for whose start the limit was set.';
COMMENT ON COLUMN device_wait.waited_sessions IS 'Sessions that waited for it.';
COMMENT ON COLUMN device_wait.outside_sessions IS 'Sessions that waited in vain and are invalid.';
COMMENT ON COLUMN device_wait.unread_sessions IS 'Sessions for which the condition could not be read, so that the limit was not applied.';
COMMENT ON COLUMN device_wait.waited_s IS 'Seconds waited for it, of all sessions together.';
COMMENT ON COLUMN device_wait.longest_s IS 'Seconds of the longest wait.';
COMMENT ON COLUMN device_wait.bound IS 'The limit, the stricter one if it was changed during the sweep.';
COMMENT ON COLUMN device_wait.note IS 'The most frequent reason why the condition could not be read; NULL if it always could.';
