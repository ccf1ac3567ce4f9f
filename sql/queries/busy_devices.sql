-- The devices of the sweep $sweep_id, or of the sweeps of $night, that had less than a core to spare: their load before
-- sessions, without the threads of the session. Android's load counts threads that wait for hardware, so a phone is
-- never busy here.
SELECT device, median(load_1m) AS load, any_value(cores) AS cores
FROM session_conditions
JOIN device_overview USING (sweep_id, device)
WHERE (sweep_id = $sweep_id OR sweep_id IN (FROM sweep SELECT sweep_id WHERE night = $night::DATE))
    AND moment = 'before'
    AND mode = 'timing'
    AND os <> 'android'
    AND _has_times(session_conditions.emulated)
GROUP BY device
HAVING median(load_1m - threads) >= any_value(cores)
ORDER BY device;
