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
    thermal_status,
    battery_percent,
    charging,
    governor,
    frequency_mhz,
    load_1m,
    free_memory_bytes,
    free_disk_bytes,
    die_c,
    swap_used_bytes,
    background_cpu_percent,
    calibration_ns,
    COLUMNS(_cell_content())
FROM device_conditions
JOIN _session USING (session_key);
