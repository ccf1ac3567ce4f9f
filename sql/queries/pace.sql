-- How fast each device measured the newest nights of a sweep: seconds from one session to the next, a row per night.
SELECT device, sweep_id, count(*) AS sessions, epoch(max(ended_at) - min(started_at)) / count(*) AS seconds_each
FROM _session
JOIN sweep USING (sweep_id)
WHERE sweep.name = $name AND purpose IS NULL
GROUP BY device, sweep_id
HAVING count(*) > 1
QUALIFY row_number() OVER (PARTITION BY device ORDER BY sweep_id DESC) <= 5
ORDER BY device, sweep_id;
