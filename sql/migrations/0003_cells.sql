-- What may be pooled is one content: each session belongs to one cell, by the rule in loading/cell_add.sql. No keys:
-- all cells are made again when that rule changes, and DuckDB refuses a key that was deleted in the same transaction.
CREATE TABLE cell (
    cell_id INTEGER NOT NULL,
    cell VARCHAR NOT NULL,          -- the hash of all of its content
    pair VARCHAR NOT NULL,          -- the hash of its content without the variant
    subject VARCHAR NOT NULL,       -- the hash of its content without mode, executions and warm-up
    subject_pair VARCHAR NOT NULL,  -- that hash without the variant
    sweep_id VARCHAR NOT NULL,
    night DATE,
    device VARCHAR NOT NULL,
    emulated BOOLEAN,
    serial VARCHAR,
    build VARCHAR,
    os_version VARCHAR,
    platform VARCHAR,
    device_model VARCHAR,
    soc VARCHAR,
    sme2 BOOLEAN,
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    seed BIGINT,
    pte_sha256 VARCHAR,
    runner_sha256 VARCHAR,
    runner_source VARCHAR,
    executorch_version VARCHAR,
    variant VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    threads INTEGER,
    executions INTEGER NOT NULL,
    warmup_executions INTEGER NOT NULL
);

CREATE TABLE session_cell (
    session_key INTEGER NOT NULL,
    cell_id INTEGER NOT NULL
);

-- Aggregates by cell, refreshed in the transaction of the load that changes them.
CREATE TABLE cell_operator (
    cell_id INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    operator VARCHAR NOT NULL,
    layout VARCHAR,
    data_type VARCHAR,
    microkernel VARCHAR,
    calls_per_run DOUBLE NOT NULL,  -- median over sessions
    time_ns DOUBLE NOT NULL,        -- median over sessions of the mean of a session's runs
    share DOUBLE                    -- of the sum of time_ns; NULL if that is 0
);

DROP TABLE series_night;

CREATE TABLE series_night (
    series_id VARCHAR NOT NULL,
    night DATE NOT NULL,
    cell_id INTEGER NOT NULL,
    sessions BIGINT NOT NULL,
    median_ns DOUBLE NOT NULL,      -- median of the medians of its sessions
    mad_ns DOUBLE NOT NULL,         -- median distance of those medians from their median, unscaled
    min_ns DOUBLE NOT NULL,
    max_ns DOUBLE NOT NULL,
    last_started_at TIMESTAMP       -- UTC, of its sessions
);
