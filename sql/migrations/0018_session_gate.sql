-- What is known of a device before a session only: its processor, its swap, its background load, its calibration.
ALTER TABLE device_conditions ADD COLUMN die_c DOUBLE;
ALTER TABLE device_conditions ADD COLUMN swap_used_bytes BIGINT;
ALTER TABLE device_conditions ADD COLUMN background_cpu_percent DOUBLE;
ALTER TABLE device_conditions ADD COLUMN calibration_ns BIGINT;

-- A limit that was set for the start of a session.
CREATE TABLE session_gate (
    session_key INTEGER NOT NULL,
    limit_name VARCHAR NOT NULL,    -- such as max_die_c
    bound DOUBLE NOT NULL,
    value DOUBLE,                   -- at the last reading before the start
    worst DOUBLE,                   -- farthest outside; NULL if no reading was
    waited_s DOUBLE NOT NULL,
    note VARCHAR
);
