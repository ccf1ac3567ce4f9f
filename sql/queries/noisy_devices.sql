-- The devices of the sweep $sweep_id, or of the sweeps of $night, whose noise has doubled.
SELECT device, noise, change, earlier_nights
FROM device_noise
WHERE (sweep_id = $sweep_id OR sweep_id IN (FROM sweep SELECT sweep_id WHERE night = $night::DATE))
    AND is_doubled
ORDER BY device;
