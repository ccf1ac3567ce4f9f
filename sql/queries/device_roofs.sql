-- The roof of each device in its newest night with one.
SELECT *, _without_times(emulated, 'local') AS without_times
FROM device_roof
QUALIFY dense_rank() OVER (PARTITION BY device ORDER BY night DESC NULLS LAST) = 1
ORDER BY device, threads, precision <> 'fp32', precision, variant, sweep_id, cell;
