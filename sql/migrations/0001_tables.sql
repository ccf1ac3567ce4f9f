-- The tables of a warehouse: small ones with keys around one big one without, `event`. Everything in them can be made
-- again from bundles. Names that end in _id or _key are internal and mean nothing outside. columns.csv comments each
-- table and column for readers.

-- One row per sweep and night.
CREATE TABLE sweep (
    sweep_id VARCHAR PRIMARY KEY,
    name VARCHAR NOT NULL,
    night DATE                    -- NULL for a loose ETDump: nobody knows when it was measured
);

-- One row per record of a device: a changed fact, such as a new build of its OS, makes a new row.
CREATE TABLE device (
    device_id INTEGER PRIMARY KEY,
    content_sha256 VARCHAR NOT NULL UNIQUE, -- of the whole record
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
    sme BOOLEAN,
    sme2 BOOLEAN,
    hostname VARCHAR,
    serial VARCHAR
);

-- One row per exported model and case: what is executed with its program.
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
    versions JSON,
    model_source_sha256 VARCHAR,  -- of the files that it was made from
    method VARCHAR,
    inputs_sha256 VARCHAR,        -- of method, inputs and set-up
    macs BIGINT,                  -- what one execution has to do at least
    read_bytes BIGINT,
    tokens BIGINT,                -- of a language model, this and what follows: tokens of one execution
    kv_depth BIGINT,              -- in its cache before
    prompt_tokens BIGINT,         -- of a prompt that is read in chunks: the set-up reads all but the last one
    steps BIGINT,                 -- executions of a session that go one token further each
    perplexity DOUBLE
);

-- What the exporter handed to the backend and what stayed portable.
CREATE TABLE model_operator (
    model_id INTEGER NOT NULL,
    placement VARCHAR NOT NULL,   -- delegated | portable
    operator VARCHAR NOT NULL,
    count BIGINT,
    reason VARCHAR
);

-- One row per runner bundle.
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

-- One row per session, however it ended.
CREATE TABLE session (
    session_key INTEGER PRIMARY KEY,
    session_id VARCHAR NOT NULL UNIQUE,
    attempt INTEGER NOT NULL,
    repetition INTEGER,           -- number of the session in its cell, from 0; -1: the first of a device, discarded
    sweep_id VARCHAR NOT NULL,
    device_id INTEGER NOT NULL,
    model_id INTEGER NOT NULL,
    runner_id INTEGER,
    series_id VARCHAR,
    source_map_id INTEGER,        -- NULL for a session without sources.json or without runs
    variant VARCHAR NOT NULL,
    mode VARCHAR NOT NULL,
    threads INTEGER,
    executions INTEGER NOT NULL,
    warmup_executions INTEGER NOT NULL,
    -- Sessions that were measured alternately with those of another content, to compare the two. They belong to no series
    -- and no night: these three are NULL for the sessions of a sweep's own matrix.
    purpose VARCHAR,              -- same_night | comparison | bisection | noise
    comparison VARCHAR,           -- id, the same for both arms
    arm VARCHAR,                  -- a | b
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
    -- What explains a changed verdict, but does not decide what may be pooled: the commit of the sweep file.
    source_commit VARCHAR,
    source_is_dirty BOOLEAN,
    source_author VARCHAR,        -- whom to ask about a change
    source_branch VARCHAR,
    -- What the runner reports.
    load_ns BIGINT,
    setup_ns BIGINT,
    model_peak_memory_bytes BIGINT,
    peak_memory_bytes BIGINT,
    memory_read_bytes_per_s BIGINT,
    threads_used INTEGER,
    outputs_repeat BOOLEAN,
    sme_hardware BOOLEAN,
    sme_reported BOOLEAN,
    sme2_hardware BOOLEAN,
    sme2_reported BOOLEAN,
    traced_ns DOUBLE,             -- median of an execution by the runner's own clock: with an ETDump,
    untraced_ns DOUBLE,           -- and without one at the end
    -- What a line `PyTorchObserver` in the log of ExecuTorch's own runner of language models reports, and nothing of ours.
    reported_prompt_tokens BIGINT,
    reported_prompt_ms DOUBLE,
    reported_first_token_ms DOUBLE,
    reported_tokens BIGINT,
    reported_text_ms DOUBLE,
    etdump_sha256 VARCHAR,
    delegate_note VARCHAR,        -- what to know about the times of the operators that delegates reported
    farm_version VARCHAR
);

-- In which state a device was before and after a session.
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
    free_disk_bytes BIGINT,
    die_c DOUBLE,
    swap_used_bytes BIGINT,
    background_cpu_percent DOUBLE, -- this and the next one only before a session
    calibration_ns BIGINT
);

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

-- Each output compared with each of its references, and judged by a limit.
CREATE TABLE accuracy (
    session_key INTEGER NOT NULL,
    output INTEGER NOT NULL,
    reference VARCHAR NOT NULL,   -- host | eager | fp32
    max_abs_error DOUBLE,
    max_rel_error DOUBLE,
    nonfinite_mismatches BIGINT,
    snr_db DOUBLE,
    cosine DOUBLE,
    top1_agreement DOUBLE,
    least_snr_db DOUBLE,
    least_top1 DOUBLE,            -- what the sweep file requires
    is_inaccurate BOOLEAN,
    first_difference BIGINT,      -- number of the first written token that differs
    margin DOUBLE                 -- how nearly it would have been that of the reference
);

-- How far the values inside a model are from eager PyTorch, by session in mode numerics and layer.
CREATE TABLE layer_value (
    session_key INTEGER NOT NULL,
    layer INTEGER NOT NULL,         -- in the order of the model, from 0
    module VARCHAR,
    operator VARCHAR NOT NULL,
    elements BIGINT NOT NULL,
    max_abs_error DOUBLE,
    snr_db DOUBLE,
    nonfinite_mismatches BIGINT NOT NULL,
    values_sha256 VARCHAR NOT NULL,
    sample DOUBLE[] NOT NULL,       -- evenly spaced values of the device
    snr_fp32_db DOUBLE,
    lost_fp32 BIGINT
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

-- How much a profile saw, one row per session that sampled its kernels: what their weights in `kernel` are worth.
CREATE TABLE kernel_profile (
    session_key INTEGER NOT NULL,
    rate_hz DOUBLE,
    samples BIGINT NOT NULL,
    dropped BIGINT NOT NULL,      -- that found no room any more
    unresolved BIGINT NOT NULL,   -- whose function has no name
    threads INTEGER,
    cpu_ns BIGINT
);

-- Where operators come from in the model, once per configuration: one sources.json and one operator tree. The same name
-- may be another operator with SME2 on and off, since XNNPACK numbers equal names.
CREATE TABLE source_map (
    source_map_id INTEGER NOT NULL,
    content_sha256 VARCHAR NOT NULL, -- of model, sources.json and tree
    model_id INTEGER NOT NULL
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

-- Where each operator of a configuration comes from in the model.
CREATE TABLE node_source (
    source_map_id INTEGER NOT NULL,
    node_id INTEGER,                -- NULL for a node of a delegate's graph that did not run
    chain_index BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    module_path VARCHAR,            -- '' is the model itself; NULL if unknown
    source_operator VARCHAR,
    file_line VARCHAR,
    fused_with VARCHAR,
    delegate_node VARCHAR,
    certainty VARCHAR NOT NULL,     -- known | ambiguous | inserted | unknown | not executed
    note VARCHAR
);

-- The modules of a model, as sources.json lists them.
CREATE TABLE module_class (
    source_map_id INTEGER NOT NULL,
    module_path VARCHAR NOT NULL,
    module_class VARCHAR
);

-- The category of each known operator, from seeds/operator_category.csv.
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

-- Sessions whose rows in `event` were removed; their runs and aggregates stay.
CREATE TABLE thinned_session (
    session_key INTEGER NOT NULL,
    thinned_at TIMESTAMP NOT NULL   -- UTC
);

-- What people decided about nights, as recorded beside the bundles (tasks/judge/decisions.py). No key: DuckDB refuses
-- one that was deleted in the same transaction.
CREATE TABLE decision (
    decision_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    night DATE,                     -- NULL in a revocation
    model VARCHAR,                  -- NULL here and below: of every series
    precision VARCHAR,
    variant VARCHAR,
    device VARCHAR,
    reason VARCHAR NOT NULL,
    decided_at TIMESTAMP NOT NULL,  -- UTC
    decided_by VARCHAR NOT NULL,
    revokes VARCHAR                 -- in a revocation
);

-- One row per execution.
CREATE TABLE run (
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL,
    run_index INTEGER NOT NULL,
    is_warmup BOOLEAN NOT NULL,
    start_ns BIGINT NOT NULL,     -- on the device's own clock
    execute_ns BIGINT NOT NULL
);

-- The one big table, without keys: one row per profile event of an execution.
CREATE TABLE event (
    run_id BIGINT NOT NULL,
    node_id INTEGER NOT NULL,
    start_ns BIGINT NOT NULL,     -- after the start of its run
    dur_ns BIGINT NOT NULL,
    self_ns BIGINT NOT NULL       -- without its children
);

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
    warmup_executions INTEGER NOT NULL,
    purpose VARCHAR,
    comparison VARCHAR,
    arm VARCHAR,
    method VARCHAR,
    inputs_sha256 VARCHAR,
    thread_group VARCHAR,
    transport VARCHAR
);

-- The cell of each session.
CREATE TABLE session_cell (
    session_key INTEGER NOT NULL,
    cell_id INTEGER NOT NULL
);

-- Aggregates begin here, refreshed in the transaction of the load that changes them. A session has one time: the mean of
-- its typical runs, and so has each of its parts.
CREATE TABLE typical_run (
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL
);

-- Where the time of each run went.
CREATE TABLE run_summary (
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL,
    delegated_ns BIGINT NOT NULL,
    portable_ns BIGINT NOT NULL,
    other_ns BIGINT NOT NULL,
    unattributed_ns BIGINT NOT NULL -- execute_ns minus the three before it
);

-- The time of each node in a session.
CREATE TABLE session_node (
    session_key INTEGER NOT NULL,
    node_id INTEGER NOT NULL,
    calls BIGINT NOT NULL,        -- over the typical runs of the session
    self_ns HUGEINT NOT NULL      -- over the same runs
);

-- The time of a session in its cell, made again with its cell.
CREATE TABLE session_time (
    session_key INTEGER NOT NULL,
    typical_runs BIGINT NOT NULL,
    execute_ns HUGEINT NOT NULL,    -- over these runs
    is_typical BOOLEAN NOT NULL     -- whether the time of its cell is the mean of this session and others
);

-- What SQL cannot express well about the runs of a session: one row per timing session that succeeded. Sessions that are
-- not in it are computed at the next load, so a migration that empties it makes a changed rule apply to all of them.
CREATE TABLE session_statistic (
    session_key INTEGER NOT NULL,
    settled_after_runs INTEGER,     -- this and what follows: NULL below 10 measured runs
    drift_share DOUBLE,
    quartile_ratio DOUBLE,
    outlier_runs INTEGER,
    is_bimodal BOOLEAN
);

-- The time of each operator in the time of a cell.
CREATE TABLE cell_operator (
    cell_id INTEGER NOT NULL,
    kind VARCHAR NOT NULL,
    operator VARCHAR NOT NULL,
    layout VARCHAR,
    data_type VARCHAR,
    microkernel VARCHAR,
    calls_per_run DOUBLE NOT NULL,
    time_ns DOUBLE NOT NULL,        -- mean of the typical runs of the typical sessions
    share DOUBLE                    -- of the sum of time_ns; NULL if that is 0
);

-- What explains a changed verdict, by cell: what it was made from and in which state its device was before its sessions.
CREATE TABLE cell_made_from (
    cell_id INTEGER NOT NULL,
    versions JSON,
    source_sha256 VARCHAR,
    commit_name VARCHAR,
    temperature_c DOUBLE,
    governor VARCHAR,
    battery VARCHAR
);

-- How far the outputs of a cell are from their references, for the view cell_accuracy: a farm has millions of sessions,
-- most of which have no reference.
CREATE TABLE cell_output (
    cell_id INTEGER NOT NULL,
    sessions BIGINT NOT NULL,
    compared_sessions BIGINT NOT NULL,
    judged_sessions BIGINT NOT NULL,
    inaccurate_sessions BIGINT NOT NULL,
    max_abs_error DOUBLE,
    snr_db DOUBLE,
    least_snr_db DOUBLE,
    snr_fp32_db DOUBLE,
    least_snr_fp32_db DOUBLE,
    cosine DOUBLE,
    top1_agreement DOUBLE,
    snr_host_db DOUBLE,
    least_snr_host_db DOUBLE,
    least_top1 DOUBLE,
    judged_top1 DOUBLE,
    first_difference BIGINT
);

-- One row per series, night and cell.
CREATE TABLE series_night (
    series_id VARCHAR NOT NULL,
    night DATE NOT NULL,
    cell_id INTEGER NOT NULL,
    sessions BIGINT NOT NULL,
    time_ns DOUBLE,                 -- of the cell
    median_ns DOUBLE NOT NULL,      -- median of the medians of its sessions
    mad_ns DOUBLE NOT NULL,         -- median distance of those medians from their median, unscaled
    min_ns DOUBLE NOT NULL,
    max_ns DOUBLE NOT NULL,
    last_started_at TIMESTAMP       -- UTC, of its sessions
);

-- What was judged of each series on each device in each night (tasks/judge/nights.py). A series without a row is
-- judged by the next load; a load, a forgotten session or a decision that concerns a series removes its rows.
CREATE TABLE series_verdict (
    series_id VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,        -- a name of tasks/judge/figures.py: latency, peak memory, ...
    night DATE NOT NULL,
    cell VARCHAR,                   -- what was judged: the newest cell of the night with a session that counts
    sessions INTEGER NOT NULL,      -- with such a figure
    invalid_sessions INTEGER NOT NULL,
    value DOUBLE,                   -- median of its sessions, in the unit of the metric: ns for latency
    baseline_value DOUBLE,
    verdict VARCHAR NOT NULL,
    ratio DOUBLE,
    low DOUBLE,
    high DOUBLE,
    z DOUBLE,
    noise_floor DOUBLE,
    baseline_nights INTEGER NOT NULL,
    baseline_from DATE,
    baseline_to DATE,
    baseline_cell VARCHAR,          -- the cell of the night baseline_to
    since DATE,
    reason VARCHAR NOT NULL
);

-- What was judged of the operators of each series on each device (tasks/judge/operators.py): for the nights whose
-- latency changed, and for the newest. Both tables are made again wherever the latency of a series is judged again.
CREATE TABLE series_operator_verdict (
    series_id VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    night DATE NOT NULL,
    level VARCHAR NOT NULL,         -- operator | category
    operator VARCHAR NOT NULL,      -- with layout, data types and kernel; the category's name for a category
    category VARCHAR NOT NULL,
    verdict VARCHAR NOT NULL,
    ratio DOUBLE,                   -- without what all operators share; NULL for an operator that is new or gone
    low DOUBLE,
    high DOUBLE,
    time_ns DOUBLE NOT NULL,        -- as measured
    baseline_ns DOUBLE NOT NULL,
    part_percent DOUBLE             -- of the change of the total; NULL if that is below 1 %
);

-- What all operators of a night share, and what changed among them in words.
CREATE TABLE series_cause (
    series_id VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    night DATE NOT NULL,
    common_factor DOUBLE NOT NULL,
    common_percent DOUBLE,          -- of the change of the total; NULL if that is below 1 %
    cause VARCHAR
);

-- How side B of each comparison compares with side A (tasks/judge/comparison.py). A comparison without a row is
-- computed by the next load; a load or a forgotten session that concerns one of its cells removes its row.
CREATE TABLE comparison_result (
    comparison VARCHAR NOT NULL,
    cell_a VARCHAR NOT NULL,
    cell_b VARCHAR NOT NULL,
    sessions_a INTEGER NOT NULL,
    sessions_b INTEGER NOT NULL,
    time_a DOUBLE,                  -- in ns
    time_b DOUBLE,
    ratio DOUBLE,
    low DOUBLE,
    high DOUBLE,
    answer VARCHAR NOT NULL,        -- different | same | unknown
    more_sessions INTEGER,
    superiority DOUBLE,
    note VARCHAR
);
