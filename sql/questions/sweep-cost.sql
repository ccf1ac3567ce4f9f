-- What does a sweep cost on each device: sessions, hours of the device, and seconds per session that counts?
SELECT
    night,
    sweep_id,
    device,
    emulated,
    count(*) AS sessions,
    count(*) FILTER (status = 'succeeded') AS succeeded,
    epoch(max(ended_at) - min(started_at)) / 3600 AS device_hours,
    sum(epoch(ended_at - started_at)) FILTER (status <> 'succeeded') AS lost_s,
    epoch(max(ended_at) - min(started_at)) / nullif(succeeded, 0) AS s_per_success
FROM session_overview
WHERE started_at IS NOT NULL
    AND ($device IS NULL OR device = $device)
    AND ($sweep IS NULL OR sweep_id = $sweep)
    AND ($night IS NULL OR night = $night::DATE)
GROUP BY night, sweep_id, device, emulated
ORDER BY night DESC, sweep_id, device;
