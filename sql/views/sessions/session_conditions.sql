CREATE OR REPLACE VIEW session_conditions AS
SELECT
    session_id,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    status,
    moment,
    taken_at,
    temperature_c,
    thermal_status,
    battery_percent,
    charging,
    governor,
    frequency_mhz,
    load_1m,
    free_memory_bytes,
    free_disk_bytes,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build,
    die_c,
    swap_used_bytes,
    background_cpu_percent,
    calibration_ns
FROM device_conditions
JOIN _session USING (session_key);

COMMENT ON VIEW session_conditions IS 'Conditions of the device before and after each session.';
COMMENT ON COLUMN session_conditions.moment IS 'before or after.';
COMMENT ON COLUMN session_conditions.taken_at IS 'When they were read, UTC.';
COMMENT ON COLUMN session_conditions.temperature_c IS 'Temperature in degrees Celsius; NULL here and below if the device does not report it.';
COMMENT ON COLUMN session_conditions.thermal_status IS '0 for not throttled, up to 6 on Android.';
COMMENT ON COLUMN session_conditions.battery_percent IS 'Charge of the battery in percent.';
COMMENT ON COLUMN session_conditions.charging IS 'Whether the battery is charging.';
COMMENT ON COLUMN session_conditions.governor IS 'Frequency governor.';
COMMENT ON COLUMN session_conditions.frequency_mhz IS 'Clock of the fastest core in MHz.';
COMMENT ON COLUMN session_conditions.load_1m IS 'Load average over one minute.';
COMMENT ON COLUMN session_conditions.free_memory_bytes IS 'Available memory.';
COMMENT ON COLUMN session_conditions.free_disk_bytes IS 'Free space where the farm keeps its files.';
COMMENT ON COLUMN session_conditions.die_c IS 'Temperature of the hottest processor sensor in degrees Celsius.';
COMMENT ON COLUMN session_conditions.swap_used_bytes IS 'Used swap.';
COMMENT ON COLUMN session_conditions.background_cpu_percent IS 'Busy share of all cores in percent, shortly before the session; NULL after it, and if no limit needed it.';
COMMENT ON COLUMN session_conditions.calibration_ns IS 'Nanoseconds of the runner''s calibration load, shortly before the session; NULL after it, and if no limit needed it.';
