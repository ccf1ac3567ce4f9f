-- How busy was each device: for which part of its time in a sweep did a runner run on it?
SELECT
    night,
    sweep_id,
    device,
    emulated,
    count(*) AS sessions,
    sum(wall_s) AS runner_s,
    epoch(max(ended_at) - min(started_at)) AS span_s,
    runner_s / nullif(span_s, 0) AS utilization
FROM session_overview
WHERE started_at IS NOT NULL
    AND ($device IS NULL OR device = $device)
    AND ($sweep IS NULL OR sweep_id = $sweep)
    AND ($since IS NULL OR night >= $since::DATE)
GROUP BY night, sweep_id, device, emulated
ORDER BY night DESC, sweep_id, device;
