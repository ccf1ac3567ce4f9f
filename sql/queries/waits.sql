-- What each device waited for before its sessions, if that took more than a minute in all; the longest waits first.
SELECT *, sum(waited_s) OVER (PARTITION BY device) AS device_waited_s
FROM device_wait
WHERE sweep_id = $sweep_id AND waited_s > 0
QUALIFY device_waited_s > 60
ORDER BY device_waited_s DESC, device, waited_s DESC, limit_name;
