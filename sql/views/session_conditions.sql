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
    free_disk_bytes
FROM device_conditions
JOIN _session USING (session_key);

COMMENT ON VIEW session_conditions IS 'How the device was before and after each session.';
COMMENT ON COLUMN session_conditions.session_id IS 'The session, as its bundle names it; the first 16 digits of the file''s SHA-256 for a loose ETDump.';
COMMENT ON COLUMN session_conditions.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN session_conditions.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN session_conditions.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_conditions.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN session_conditions.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN session_conditions.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_conditions.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_conditions.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN session_conditions.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN session_conditions.status IS 'succeeded, failed or invalid.';
COMMENT ON COLUMN session_conditions.moment IS 'before or after.';
COMMENT ON COLUMN session_conditions.taken_at IS 'When, UTC.';
COMMENT ON COLUMN session_conditions.temperature_c IS 'Temperature in degrees Celsius; NULL here and below where the device does not say.';
COMMENT ON COLUMN session_conditions.thermal_status IS '0 for not throttled; Android''s scale up to 6.';
COMMENT ON COLUMN session_conditions.battery_percent IS 'Charge of the battery.';
COMMENT ON COLUMN session_conditions.charging IS 'Whether it is charging.';
COMMENT ON COLUMN session_conditions.governor IS 'Frequency governor.';
COMMENT ON COLUMN session_conditions.frequency_mhz IS 'Clock of the fastest core.';
COMMENT ON COLUMN session_conditions.load_1m IS 'Load average of one minute.';
COMMENT ON COLUMN session_conditions.free_memory_bytes IS 'Memory that is free to use.';
COMMENT ON COLUMN session_conditions.free_disk_bytes IS 'Room where the farm keeps its files.';
