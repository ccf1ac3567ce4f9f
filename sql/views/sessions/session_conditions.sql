-- Reads: device_conditions, _session
-- Conditions of the device before and after each session.
CREATE OR REPLACE VIEW session_conditions AS
SELECT
    COLUMNS(_cell_name()),
    session_id,
    status,
    moment,
    taken_at,
    temperature_c,
    die_c,
    thermal_status,
    frequency_mhz,
    governor,
    battery_percent,
    charging,
    load_1m,
    background_cpu_percent,
    calibration_ns,
    free_memory_bytes,
    swap_used_bytes,
    free_disk_bytes,
    COLUMNS(_cell_content())
FROM device_conditions
JOIN _session USING (session_key);
