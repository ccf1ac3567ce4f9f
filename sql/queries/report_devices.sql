-- What each device was during the sweep, and how its sessions ended.
SELECT *
FROM device_overview
WHERE sweep_id = $sweep_id
ORDER BY emulated IS TRUE, device, started_at;
