-- Reads: session_readiness
-- How long each device of a sweep waited for each limit before its sessions, those that are discarded included.
CREATE OR REPLACE VIEW device_wait AS
SELECT
    sweep_id,
    night,
    device,
    emulated,
    limit_name,
    -- Sessions for whose start the limit was set.
    count(*) AS sessions,
    -- Sessions that waited for it.
    count(*) FILTER (waited_s > 0) AS waited_sessions,
    -- Sessions that waited in vain and are invalid.
    count(*) FILTER (is_outside) AS outside_sessions,
    -- Sessions for which the condition could not be read, so that the limit was not applied.
    count(*) FILTER (value IS NULL) AS unread_sessions,
    -- Seconds waited for it, of all sessions together.
    sum(waited_s) AS waited_s,
    -- Seconds of the longest wait.
    max(waited_s) AS longest_s,
    -- The value that was farthest outside the limit; NULL if none was.
    CASE WHEN starts_with(limit_name, 'min_') THEN min(worst) ELSE max(worst) END AS worst,
    -- The limit, the stricter one if it was changed during the sweep.
    CASE WHEN starts_with(limit_name, 'min_') THEN max(bound) ELSE min(bound) END AS bound,
    -- The most frequent reason why the condition could not be read; NULL if it always could.
    mode(note) AS note
FROM session_readiness
GROUP BY sweep_id, night, device, emulated, limit_name;
