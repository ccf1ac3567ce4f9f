-- Which devices waited how long before their sessions, and for which limits?
SELECT
    night,
    sweep_id,
    device,
    limit_name,
    waited_s,
    longest_s,
    worst,
    bound,
    sessions,
    waited_sessions,
    outside_sessions,
    unread_sessions,
    note
FROM device_wait
WHERE ($device IS NULL OR device = $device)
    AND ($sweep IS NULL OR sweep_id = $sweep)
    AND ($since IS NULL OR night >= $since::DATE)
ORDER BY night DESC, waited_s DESC, sweep_id, device, limit_name;
