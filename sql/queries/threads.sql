-- Each model by number of threads and variant, where several numbers were measured. Emulated devices are left out.
SELECT * REPLACE (coalesce(soc, 'unknown') AS soc)
FROM thread_scaling
WHERE sweep_id = $sweep_id AND _has_times(emulated)
ORDER BY model, device, precision <> 'fp32', precision, thread_group, variant, threads;
