-- The devices of a sweep whose noise has doubled.
SELECT device, noise, change, earlier_nights
FROM device_noise
WHERE sweep_id = $sweep_id AND is_doubled
ORDER BY device;
