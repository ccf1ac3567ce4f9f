-- How often each session of a certification counts, by its number in the cell, and the runs that it brings.
SELECT slot, count(*) FILTER (status = 'succeeded') AS succeeded, count(*) AS attempts
FROM _session
WHERE sweep_id = $sweep_id
GROUP BY slot
ORDER BY slot;
