-- Small tables with keys around one big table without: `event`, one row per profile event of an execution.
-- Everything here can be rebuilt from bundles; names ending in _id or _key are internal and mean nothing outside.

CREATE TABLE sweep (
    sweep_id VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    night DATE                    -- NULL for a loose ETDump: nobody knows when it was measured
);

CREATE TABLE device (
    device_id INTEGER PRIMARY KEY,
    content_sha256 VARCHAR NOT NULL UNIQUE, -- of the whole record: a new OS build makes a new row
    name VARCHAR NOT NULL,
    transport VARCHAR,
    emulated BOOLEAN,
    site VARCHAR,
    labels JSON,
    os VARCHAR,
    os_version VARCHAR,
    build VARCHAR,
    device_model VARCHAR,
    soc VARCHAR,
    cores INTEGER,
    memory_bytes BIGINT,
    arch VARCHAR,
    platform VARCHAR,
    sme2 BOOLEAN,
    hostname VARCHAR,
    serial VARCHAR
);

CREATE TABLE model (
    model_id INTEGER PRIMARY KEY,
    content_sha256 VARCHAR NOT NULL UNIQUE,
    name VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    seed BIGINT,
    export_key VARCHAR,
    pte_sha256 VARCHAR,
    pte_bytes BIGINT,
    executorch_version VARCHAR,
    versions JSON
);

-- What the exporter handed to the backend and what stayed portable.
CREATE TABLE model_operator (
    model_id INTEGER NOT NULL,
    placement VARCHAR NOT NULL,   -- delegated | portable
    operator VARCHAR NOT NULL,
    count BIGINT,
    reason VARCHAR
);

CREATE TABLE runner (
    runner_id INTEGER PRIMARY KEY,
    content_sha256 VARCHAR NOT NULL UNIQUE,
    runner_sha256 VARCHAR NOT NULL,
    platform VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    source_sha256 VARCHAR,
    compiler VARCHAR,
    runner_version VARCHAR,
    executorch_version VARCHAR,
    versions JSON,
    provenance VARCHAR
);

-- What may be compared over nights. The versions of runner and ExecuTorch stay out, so that an upgrade shows as a step.
CREATE TABLE series (
    series_id VARCHAR PRIMARY KEY,
    model VARCHAR NOT NULL,
    seed BIGINT,
    backend VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    threads INTEGER,
    variant VARCHAR NOT NULL,
    device_model VARCHAR NOT NULL,
    os_build VARCHAR,
    emulated BOOLEAN
);

CREATE TABLE session (
    session_key INTEGER PRIMARY KEY,
    session_id VARCHAR NOT NULL UNIQUE,
    attempt INTEGER NOT NULL,
    slot INTEGER,                 -- the session's place among its like in the sweep
    sweep_id VARCHAR NOT NULL,
    device_id INTEGER NOT NULL,
    model_id INTEGER NOT NULL,
    runner_id INTEGER,
    series_id VARCHAR,
    variant VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    threads INTEGER,
    executions INTEGER NOT NULL,
    warmup_executions INTEGER NOT NULL,
    status VARCHAR NOT NULL,
    reason_code VARCHAR,
    reason VARCHAR,
    log_tail VARCHAR,
    started_at TIMESTAMP,         -- UTC
    ended_at TIMESTAMP,           -- UTC
    command JSON,
    exit_code INTEGER,
    signal INTEGER,
    wall_s DOUBLE,
    load_ns BIGINT,
    peak_resident_bytes BIGINT,
    threads_used INTEGER,
    sme2_hardware BOOLEAN,
    sme2_told BOOLEAN,
    etdump_sha256 VARCHAR,
    farm_version VARCHAR
);

CREATE TABLE device_conditions (
    session_key INTEGER NOT NULL,
    moment VARCHAR NOT NULL,      -- before | after
    taken_at TIMESTAMP,           -- UTC
    temperature_c DOUBLE,
    thermal_status VARCHAR,
    battery_percent DOUBLE,
    charging BOOLEAN,
    governor VARCHAR,
    frequency_mhz DOUBLE,
    load_1m DOUBLE,
    free_memory_bytes BIGINT,
    free_disk_bytes BIGINT
);

CREATE TABLE accuracy (
    session_key INTEGER NOT NULL,
    output INTEGER NOT NULL,
    max_abs_error DOUBLE,
    max_rel_error DOUBLE,
    nonfinite_mismatches BIGINT
);

-- Kernels by session: what ran (`executed`, sampled) and what XNNPACK chose (`selected`, its trace log), never mixed.
CREATE TABLE kernel (
    session_key INTEGER NOT NULL,
    evidence VARCHAR NOT NULL,    -- executed | selected
    name VARCHAR,                 -- NULL for samples whose function has no name
    library VARCHAR,
    weight BIGINT NOT NULL,       -- samples if executed, lines of the log if selected
    operation VARCHAR,            -- this and what follows: NULL if the name is no kernel's
    data_type VARCHAR,
    isa VARCHAR,
    isa_family VARCHAR            -- SME2 | SME | NEON | other
);

-- The operator tree, once per exported model: the union of the nodes that any of its runs showed.
CREATE TABLE node (
    node_id INTEGER PRIMARY KEY,
    model_id INTEGER NOT NULL,
    parent_node_id INTEGER,
    kind VARCHAR NOT NULL,        -- method | delegate_call | operator_call | delegated | portable | other
    name VARCHAR NOT NULL,        -- as the ETDump has it
    operator VARCHAR NOT NULL,    -- the name without number, layout, types and kernel
    layout VARCHAR,
    data_type VARCHAR,
    microkernel VARCHAR,
    chain_index BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL
);

CREATE TABLE operator_category (
    operator VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    category VARCHAR NOT NULL
);

-- Everything that was ever loaded, by content: a file whose hash stands here is not loaded again.
CREATE TABLE load_ledger (
    sha256 VARCHAR PRIMARY KEY,
    kind VARCHAR NOT NULL,        -- bundle (hash of its session.json) | etdump
    path VARCHAR NOT NULL,
    session_key INTEGER NOT NULL,
    loaded_at TIMESTAMP NOT NULL  -- UTC
);

CREATE TABLE run (
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL,
    run_index INTEGER NOT NULL,
    is_warmup BOOLEAN NOT NULL,
    start_ns BIGINT NOT NULL,     -- on the device's own clock
    execute_ns BIGINT NOT NULL
);

CREATE TABLE event (
    run_id BIGINT NOT NULL,
    node_id INTEGER NOT NULL,
    start_ns BIGINT NOT NULL,     -- after the start of its run
    dur_ns BIGINT NOT NULL,
    self_ns BIGINT NOT NULL       -- without its children
);

-- Aggregates, refreshed in the transaction of the load that changes them.
CREATE TABLE run_summary (
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL,
    delegated_ns BIGINT NOT NULL,
    portable_ns BIGINT NOT NULL,
    other_ns BIGINT NOT NULL,
    unattributed_ns BIGINT NOT NULL -- execute_ns minus the three before it
);

CREATE TABLE session_node (
    session_key INTEGER NOT NULL,
    node_id INTEGER NOT NULL,
    calls BIGINT NOT NULL,        -- over all measured runs of the session
    self_ns HUGEINT NOT NULL      -- likewise
);

CREATE TABLE series_night (
    series_id VARCHAR NOT NULL,
    night DATE NOT NULL,
    sessions BIGINT NOT NULL,
    median_ns DOUBLE NOT NULL,    -- median of the medians of its sessions
    mad_ns DOUBLE NOT NULL,       -- median distance of those medians from their median, unscaled
    min_ns DOUBLE NOT NULL,
    max_ns DOUBLE NOT NULL,
    pte_sha256 VARCHAR,           -- this and what follows: NULL where the night saw several
    executorch_version VARCHAR,
    runner_sha256 VARCHAR
);
