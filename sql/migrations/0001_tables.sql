-- The tables of a warehouse: small ones with keys around one big one without, `event`. Bundles are enough to rebuild
-- them. Names that end in _id or _key are internal and mean nothing outside.

-- One row per sweep and night.
CREATE TABLE sweep (
    -- Id of the sweep; `loose-<session_id>` for a loose ETDump.
    sweep_id VARCHAR PRIMARY KEY,
    -- Name of the sweep; `loose` for a loose ETDump.
    name VARCHAR NOT NULL,
    -- Date of the sweep; NULL for a loose ETDump.
    night DATE
);

-- One row per record of a device: a changed fact, such as a new build of its OS, makes a new row.
CREATE TABLE device (
    -- Number of the device, as it was during the session, inside this warehouse.
    device_id INTEGER PRIMARY KEY,
    -- SHA-256 of the complete record.
    content_sha256 VARCHAR NOT NULL UNIQUE,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    name VARCHAR NOT NULL,
    -- How the device is reached: local, ssh, adb or simulated; NULL for a loose ETDump.
    transport VARCHAR,
    -- Whether the device is emulated or simulated, so that its times mean nothing; NULL for a loose ETDump.
    emulated BOOLEAN,
    -- Site of the device in the inventory.
    site VARCHAR,
    -- Labels of the device in the inventory, JSON; sme_units is also what its system reports, unless a label does.
    labels JSON,
    -- linux, macos or android; NULL if unknown.
    os VARCHAR,
    -- Version of the device's operating system; NULL if unknown.
    os_version VARCHAR,
    -- Build of the device's operating system; NULL if unknown.
    build VARCHAR,
    -- Model of the device; NULL if unknown.
    device_model VARCHAR,
    -- System on chip or processor of the device; NULL if unknown.
    soc VARCHAR,
    -- Processor cores.
    cores INTEGER,
    -- Main memory.
    memory_bytes BIGINT,
    -- Architecture.
    arch VARCHAR,
    -- Platform of the runners of the device.
    platform VARCHAR,
    -- Whether the device has SME of any version; NULL if unknown.
    sme BOOLEAN,
    -- Whether the device has SME2; NULL if unknown.
    sme2 BOOLEAN,
    -- Host name.
    hostname VARCHAR,
    -- Serial number of the device; NULL if unknown.
    serial VARCHAR,
    -- Words before the runner in the commands of its sessions, from `cpu_affinity` and `launcher` of the inventory;
    -- NULL without any.
    launcher VARCHAR
);

-- One row per exported model and case: what is executed with its program.
CREATE TABLE model (
    -- Number of the exported model inside this warehouse.
    model_id INTEGER PRIMARY KEY,
    content_sha256 VARCHAR NOT NULL UNIQUE,
    -- Name of the model; the name of the file for a loose ETDump.
    name VARCHAR NOT NULL,
    -- Precision of the exported model, such as fp32 or int8_static; `unknown` for a loose ETDump.
    precision VARCHAR NOT NULL,
    -- Seed of the model's weights and inputs.
    seed BIGINT,
    -- Hash of all inputs of the export.
    export_key VARCHAR,
    -- SHA-256 of the .pte file; NULL if the export failed.
    pte_sha256 VARCHAR,
    -- Size of the .pte file.
    pte_bytes BIGINT,
    -- Version of ExecuTorch in the runner; NULL if unknown.
    executorch_version VARCHAR,
    -- All versions recorded by its export, JSON.
    versions JSON,
    -- Hash of its source files, except those of installed packages; NULL if unknown.
    model_source_sha256 VARCHAR,
    -- Method of the program that is executed; NULL without an export.
    method VARCHAR,
    -- Hash of what is executed with the program: the method, its inputs, its set-up and weights outside the program;
    -- NULL without an export.
    inputs_sha256 VARCHAR,
    -- Multiply-accumulate operations of one execution: all products of matrices and convolutions; NULL for a dynamic
    -- shape.
    macs BIGINT,
    -- Bytes of weights and state that one execution reads, each once; NULL for a .pte file from elsewhere.
    read_bytes BIGINT,
    -- Tokens that one execution of a language model processes; NULL for other models.
    tokens BIGINT,
    -- Tokens that are in its KV cache before; NULL for other models.
    kv_depth BIGINT,
    -- Tokens of a prompt that is read in chunks, of which an execution reads the last one; NULL for all others.
    prompt_tokens BIGINT,
    -- Executions of a session, each one token further; NULL if each does the same.
    steps BIGINT,
    -- Layers with weights in the method; NULL for a .pte file from elsewhere.
    layer_count BIGINT,
    -- Of them, those whose weights are not stored in fp32.
    converted_layers BIGINT,
    -- Weights of all layers.
    layer_weights BIGINT,
    -- Of them, those that are not stored in fp32.
    converted_weights BIGINT,
    -- Perplexity on the text that the entry in the sweep file names, in eager PyTorch with the weights of the recipe;
    -- NULL without one.
    perplexity DOUBLE
);

-- What the exporter handed to the backend and what stayed portable.
CREATE TABLE model_operator (
    model_id INTEGER NOT NULL,
    -- delegated or portable.
    placement VARCHAR NOT NULL,
    -- Name of the operator without number, layout, data types and kernel.
    operator VARCHAR NOT NULL,
    -- How often the graph contains the operator.
    count BIGINT,
    -- Why the session did not succeed, in one sentence; NULL if it did.
    reason VARCHAR
);

-- One row per runner bundle.
CREATE TABLE runner (
    -- Number of the runner inside this warehouse.
    runner_id INTEGER PRIMARY KEY,
    content_sha256 VARCHAR NOT NULL UNIQUE,
    -- SHA-256 over all files of the runner.
    runner_sha256 VARCHAR NOT NULL,
    platform VARCHAR NOT NULL,
    -- wheel (built by the farm) or registered (built elsewhere).
    kind VARCHAR NOT NULL,
    -- SHA-256 of its source; NULL if unknown.
    source_sha256 VARCHAR,
    -- Compiler that built it.
    compiler VARCHAR,
    -- Version of the runner.
    runner_version VARCHAR,
    executorch_version VARCHAR,
    -- All versions recorded in its manifest, JSON.
    versions JSON,
    -- Where a registered runner comes from.
    provenance VARCHAR
);

-- What may be compared over nights. The versions of runner and ExecuTorch stay out, so that an upgrade shows as a step.
CREATE TABLE series (
    -- Series of the session: what it may be compared with over nights, see series_latency.
    series_id VARCHAR PRIMARY KEY,
    -- Name of the model, as model@case if it is measured in several ways (methods, shapes); the name of the file for a
    -- loose ETDump.
    model VARCHAR NOT NULL,
    seed BIGINT,
    -- The delegate that the name of the model states, such as openvino+xnnpack. Otherwise backends that the program of
    -- the series calls, such as xnnpack or coreml+xnnpack; portable for none; unknown for a .pte file whose delegates
    -- were not recorded.
    backend VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    -- Requested threads; NULL for a loose ETDump.
    threads INTEGER,
    -- sme2_on, sme2_off or sme1 (SME without SME2); `unknown` for a loose ETDump.
    variant VARCHAR NOT NULL,
    device_model VARCHAR NOT NULL,
    -- Build of the operating system.
    os_build VARCHAR,
    emulated BOOLEAN
);

-- One row per session, however it ended.
CREATE TABLE session (
    -- Number of the session inside this warehouse.
    session_key INTEGER PRIMARY KEY,
    -- Id of the session, as in its bundle; the first 16 digits of the file's SHA-256 for a loose ETDump.
    session_id VARCHAR NOT NULL UNIQUE,
    -- 1 for the first attempt at the session, counting up.
    attempt INTEGER NOT NULL,
    -- Position of the session among its repetitions in the sweep, from 0; -1 for the first session of a device, which
    -- is discarded.
    repetition INTEGER,
    sweep_id VARCHAR NOT NULL,
    device_id INTEGER NOT NULL,
    model_id INTEGER NOT NULL,
    runner_id INTEGER,
    series_id VARCHAR,
    -- Number of a configuration (one sources.json and one operator tree) inside this warehouse; NULL for a session
    -- without sources.json or without runs.
    source_map_id INTEGER,
    variant VARCHAR NOT NULL,
    -- timing, profile, counts, trace, numerics or selected; only timing counts as latency.
    mode VARCHAR NOT NULL,
    threads INTEGER,
    -- Requested executions, warm-up included.
    executions INTEGER NOT NULL,
    -- First executions, which never enter statistics.
    warmup_executions INTEGER NOT NULL,
    -- Why it was interleaved with another content: same_night, comparison, bisection or noise; NULL in a sweep's own
    -- matrix, which alone counts as latency.
    purpose VARCHAR,
    -- Id of the comparison that it was measured for; NULL without one.
    comparison VARCHAR,
    -- Its side of that comparison, a or b; NULL without one.
    arm VARCHAR,
    -- succeeded, failed or invalid.
    status VARCHAR NOT NULL,
    -- Kind of reason, one word; NULL if the session succeeded.
    reason_code VARCHAR,
    reason VARCHAR,
    -- Last lines that the runner wrote to standard error.
    log_tail VARCHAR,
    -- Start of the session, UTC.
    started_at TIMESTAMP,
    -- End of the session, UTC.
    ended_at TIMESTAMP,
    -- Command line of the runner on the device, as a JSON list.
    command JSON,
    -- Exit code of the runner; NULL if it did not run or was killed.
    exit_code INTEGER,
    -- Signal that killed the runner, or NULL.
    signal INTEGER,
    -- Seconds that the runner ran.
    wall_s DOUBLE,
    -- Commit of the repository that the sweep file lies in; NULL outside a repository.
    source_commit VARCHAR,
    -- Whether files of that repository had uncommitted changes; NULL if unknown.
    source_is_dirty BOOLEAN,
    -- Author of that commit, by name: whom to ask; NULL if unknown.
    source_author VARCHAR,
    -- Branch that was checked out; NULL if it was a commit alone or is unknown.
    source_branch VARCHAR,
    -- The newest commits, this one first, a JSON list of {id, author, subject}; NULL if unknown.
    source_commits JSON,
    -- Nanoseconds to load the model, as reported by the runner.
    load_ns BIGINT,
    -- Nanoseconds that the runner needed for the set-up, such as the chunks of a prompt before the last one; NULL
    -- without one.
    setup_ns BIGINT,
    -- Peak memory of the runner in bytes after its first run: what the model needs, without an ETDump of many runs.
    model_peak_memory_bytes BIGINT,
    -- Peak memory of the runner in bytes: resident, or resident and swapped out at its end if that is more; NULL if the
    -- runner does not report it.
    peak_memory_bytes BIGINT,
    -- Bytes per second at which the runner reads 256 MB of memory after the session, on as many threads; NULL if it was
    -- not measured.
    memory_read_bytes_per_s BIGINT,
    -- Threads that the runner used; NULL if the runner does not report it.
    threads_used INTEGER,
    -- Whether the last execution returned what the first did; false for a model that changes its own state, whose first
    -- execution is compared with eager PyTorch.
    outputs_repeat BOOLEAN,
    -- Whether the runner found SME of any version; NULL if the runner does not report it.
    sme_hardware BOOLEAN,
    -- Whether the runner reported SME to XNNPACK; NULL if the runner does not report it.
    sme_reported BOOLEAN,
    -- Whether the runner found SME2; NULL if the runner does not report it.
    sme2_hardware BOOLEAN,
    -- Whether the runner reported SME2 to XNNPACK; NULL if the runner does not report it.
    sme2_reported BOOLEAN,
    -- Median nanoseconds of an execution with an ETDump, by the runner's own clock; NULL unless untraced_ns is known.
    traced_ns DOUBLE,
    -- Median nanoseconds of an execution without an ETDump, measured at the end of one session of each cell after
    -- loading again; NULL for all others.
    untraced_ns DOUBLE,
    -- Tokens of the prompt, from a PyTorchObserver line of a loaded log; NULL for all other sessions.
    reported_prompt_tokens BIGINT,
    -- Milliseconds to tokenize and read the prompt.
    reported_prompt_ms DOUBLE,
    -- Milliseconds until the first token was written, without loading.
    reported_first_token_ms DOUBLE,
    -- Tokens that were written.
    reported_tokens BIGINT,
    -- Milliseconds to write them, sampling included.
    reported_text_ms DOUBLE,
    -- SHA-256 of the ETDump, or of the log that was loaded instead; NULL for a session without runs.
    etdump_sha256 VARCHAR,
    -- Note on the times of operators in delegates: which delegates are shown as one part and why, and which times are
    -- estimates; NULL if they are measured times.
    delegate_note VARCHAR,
    -- Version of the farm that measured.
    farm_version VARCHAR
);

-- In which state a device was before and after a session.
CREATE TABLE device_conditions (
    session_key INTEGER NOT NULL,
    -- before or after.
    moment VARCHAR NOT NULL,
    -- When they were read, UTC.
    taken_at TIMESTAMP,
    -- Temperature in degrees Celsius; NULL if the device does not report it.
    temperature_c DOUBLE,
    -- 0 for not throttled, up to 6 on Android.
    thermal_status VARCHAR,
    -- Charge of the battery in percent.
    battery_percent DOUBLE,
    -- Whether the battery is charging.
    charging BOOLEAN,
    -- Frequency governor.
    governor VARCHAR,
    -- Clock of the fastest core in MHz.
    frequency_mhz DOUBLE,
    -- Load average over one minute.
    load_1m DOUBLE,
    -- Available memory.
    free_memory_bytes BIGINT,
    -- Free space where the farm keeps its files.
    free_disk_bytes BIGINT,
    -- Temperature of the hottest processor sensor in degrees Celsius.
    die_c DOUBLE,
    -- Used swap.
    swap_used_bytes BIGINT,
    -- Busy share of all cores in percent, shortly before the session; NULL after it, and if no limit needed it.
    background_cpu_percent DOUBLE,
    -- Nanoseconds of the runner's calibration load, shortly before the session; NULL after it, and if no limit needed
    -- it.
    calibration_ns BIGINT
);

-- A limit that was set for the start of a session.
CREATE TABLE session_gate (
    session_key INTEGER NOT NULL,
    -- Name of the limit in the sweep file or the inventory, such as max_die_c.
    limit_name VARCHAR NOT NULL,
    -- The limit.
    bound DOUBLE NOT NULL,
    -- The condition at the last reading before the start; NULL if it could not be read.
    value DOUBLE,
    -- The value that was farthest outside; NULL if none was.
    worst DOUBLE,
    -- Seconds that the session waited for this limit.
    waited_s DOUBLE NOT NULL,
    -- Why value is NULL.
    note VARCHAR
);

-- Each output compared with each of its references, and judged by a limit.
CREATE TABLE accuracy (
    session_key INTEGER NOT NULL,
    -- Number of the output, from 0.
    output INTEGER NOT NULL,
    -- eager: eager PyTorch in the same precision; fp32: eager PyTorch in fp32; host: the same program on the machine
    -- that exported it; samples: the worst of the user's samples, executed there.
    reference VARCHAR NOT NULL,
    -- Largest absolute difference from the reference; NULL if no value is finite in both.
    max_abs_error DOUBLE,
    -- Largest difference relative to the reference; NULL if no value is finite in both.
    max_rel_error DOUBLE,
    -- Values that are NaN or infinite on one side and not the same on the other.
    nonfinite_mismatches BIGINT,
    -- Signal-to-noise ratio in dB; NULL if both are equal or the reference is 0 everywhere.
    snr_db DOUBLE,
    -- Cosine of the angle between output and reference; NULL if one is 0 everywhere.
    cosine DOUBLE,
    -- Share of rows whose largest element is at the same place; of integers, of equal elements; NULL for others.
    top1_agreement DOUBLE,
    -- The limit that applied; NULL if there was none.
    min_snr_db DOUBLE,
    -- The least top1_agreement that the entry in the sweep file states; NULL if it states none.
    min_top1 DOUBLE,
    -- Whether the output is beyond the limit; NULL if it was not judged.
    is_inaccurate BOOLEAN,
    -- Number, from 0, of the first written token that differs from the reference; NULL if none does, and of other
    -- outputs.
    first_difference BIGINT,
    -- How far the scores of that token and of the reference's are from each other in eager PyTorch, relative to the
    -- root mean square of all scores; NULL if unknown.
    margin DOUBLE,
    -- Why it is inaccurate, as the export found; NULL if unknown.
    cause VARCHAR,
    -- Number of samples; this and what follows is NULL for other references.
    samples BIGINT,
    -- Samples with an output beyond a limit.
    below BIGINT,
    -- File of the worst sample.
    worst VARCHAR,
    -- Median of the samples' SNR in dB; NULL if half of them equal the reference.
    median_snr_db DOUBLE,
    -- Mean of the user's score; NULL without one.
    score DOUBLE,
    -- The same for eager PyTorch before the conversion.
    reference_score DOUBLE,
    -- The least score that the entry in the sweep file states; NULL if it states none.
    min_score DOUBLE,
    -- Samples that calibrated the recipe, too.
    calibrating BIGINT,
    -- Machine that executed the samples: host name, system and processor.
    machine VARCHAR,
    -- Hash of the names and hashes of all samples.
    sha256 VARCHAR
);

-- How far the values inside a model are from eager PyTorch, by session in mode numerics and layer.
CREATE TABLE layer_value (
    session_key INTEGER NOT NULL,
    -- Number of the layer in the order of the model, from 0.
    layer INTEGER NOT NULL,
    -- Path of its module; NULL for an operator outside any.
    module VARCHAR,
    -- The operator that computes it, the last of those fused into one.
    operator VARCHAR NOT NULL,
    -- Elements of its value.
    elements BIGINT NOT NULL,
    -- Largest absolute difference from eager PyTorch; NULL if no element is finite in both.
    max_abs_error DOUBLE,
    -- Signal-to-noise ratio against eager PyTorch in dB; NULL if both are equal or eager is 0 everywhere.
    snr_db DOUBLE,
    -- Elements that are NaN or infinite on one side and not the same on the other.
    nonfinite_mismatches BIGINT NOT NULL,
    -- Hash of the values on the device.
    values_sha256 VARCHAR NOT NULL,
    -- Up to 64 evenly spaced elements of them; NULL for NaN and infinity.
    sample DOUBLE[] NOT NULL,
    -- Signal-to-noise ratio against the same layer of the fp32 model in dB; NULL for fp32, and for a layer that the
    -- fp32 model does not have.
    snr_fp32_db DOUBLE,
    -- Elements that are NaN or infinite and finite in the fp32 model; NULL as snr_fp32_db.
    lost_fp32 BIGINT
);

-- Kernels by session: what ran (`counted`, or `executed`, which is sampled) and what XNNPACK chose (`selected`), never
-- mixed.
CREATE TABLE kernel (
    session_key INTEGER NOT NULL,
    -- counted (each call, by the runner), executed (sampled by the runner) or selected (chosen by XNNPACK).
    evidence VARCHAR NOT NULL,
    -- Name of the kernel or another function; NULL for samples whose function has no name.
    name VARCHAR,
    -- Library that contains it; NULL in mode trace.
    library VARCHAR,
    -- Calls if counted, samples if executed; if selected, 1 or the lines of the log.
    weight BIGINT NOT NULL,
    -- What the kernel does: gemm, igemm, ...; NULL if the name is not that of a kernel.
    operation VARCHAR,
    -- Data types in the name of a delegated operator, such as `PQS8, QC8W`.
    data_type VARCHAR,
    -- Instruction set in the name of the kernel, such as neonsme2.
    isa VARCHAR,
    -- SME2, SME, NEON or other.
    isa_family VARCHAR
);

-- How much a profile saw, one row per session that sampled its kernels: what their weights in `kernel` are worth.
CREATE TABLE kernel_profile (
    session_key INTEGER NOT NULL,
    -- Requested samples per second of processor time.
    rate_hz DOUBLE,
    -- Samples taken.
    samples BIGINT NOT NULL,
    -- Samples lost because the buffer was full.
    dropped BIGINT NOT NULL,
    -- Samples whose function has no name in its library.
    unresolved BIGINT NOT NULL,
    threads INTEGER,
    -- Processor time of all threads while they were sampled, in nanoseconds;
    cpu_ns BIGINT
);

-- Where operators come from in the model, once per configuration: one sources.json and one operator tree. The same name
-- may be another operator with SME2 on and off, since XNNPACK numbers equal names.
CREATE TABLE source_map (
    source_map_id INTEGER NOT NULL,
    -- Hash of the model, sources.json and the operator tree.
    content_sha256 VARCHAR NOT NULL,
    model_id INTEGER NOT NULL
);

-- The operator tree, once per exported model: the union of the nodes that any of its runs showed.
CREATE TABLE node (
    -- Number of the node inside this warehouse.
    node_id INTEGER PRIMARY KEY,
    model_id INTEGER NOT NULL,
    -- Node that contains it; NULL for Method::execute.
    parent_node_id INTEGER,
    -- delegated, portable or other; method, delegate_call and operator_call for the unattributed time inside
    -- Method::execute itself and inside the calls of delegates and operators.
    kind VARCHAR NOT NULL,
    -- Name in the ETDump.
    name VARCHAR NOT NULL,
    operator VARCHAR NOT NULL,
    -- Layout in the name of a delegated operator, such as NHWC.
    layout VARCHAR,
    data_type VARCHAR,
    -- Kind of kernel in the name of a delegated operator: GEMM, IGEMM, DWConv, ...
    microkernel VARCHAR,
    -- Number of the chain of instructions in the program.
    chain_index BIGINT NOT NULL,
    -- Number of the instruction in its chain.
    instruction_id BIGINT NOT NULL
);

-- Where each operator of a configuration comes from in the model.
CREATE TABLE node_source (
    source_map_id INTEGER NOT NULL,
    -- Node of the operator tree; NULL for a node of the delegate's graph that did not run.
    node_id INTEGER,
    -- Chain of instructions of the program.
    chain_index BIGINT NOT NULL,
    -- Instruction of the program.
    instruction_id BIGINT NOT NULL,
    -- Path of the module that calls it; empty for the model itself, NULL if unknown.
    module_path VARCHAR,
    -- Operator of the exported model.
    source_operator VARCHAR,
    -- File and line of the call in the model.
    file_line VARCHAR,
    -- Other operators of the model in the same node; `possibly` precedes one that may have run separately.
    fused_with VARCHAR,
    -- Kind of the node in the delegate's graph.
    delegate_node VARCHAR,
    -- known, ambiguous, inserted, unknown or not executed.
    certainty VARCHAR NOT NULL,
    -- Why it is not known.
    note VARCHAR
);

-- The modules of a model, as sources.json lists them.
CREATE TABLE module_class (
    source_map_id INTEGER NOT NULL,
    -- Path of the module; empty for the model itself.
    module_path VARCHAR NOT NULL,
    -- Class of the module, such as torch.nn.modules.linear.Linear; NULL for a container that is not called itself.
    module_class VARCHAR
);

-- The category of each known operator, from seeds/operator_category.csv.
CREATE TABLE operator_category (
    operator VARCHAR NOT NULL,
    -- delegated, portable or other; method, delegate_call and operator_call for the unattributed time inside
    -- Method::execute itself and inside the calls of delegates and operators.
    kind VARCHAR NOT NULL,
    -- Convolution, GEMM, Data Movement, Elementwise or Other (sql/seeds/operator_category.csv); Unattributed is the
    -- time of Method::execute that no operator accounts for.
    category VARCHAR NOT NULL
);

-- Everything that was loaded, by content: a file with a listed hash is not loaded again.
CREATE TABLE load_ledger (
    -- SHA-256 of the bundle's session.json, or of the loose ETDump.
    sha256 VARCHAR PRIMARY KEY,
    -- bundle or etdump.
    kind VARCHAR NOT NULL,
    -- Where it was loaded from.
    path VARCHAR NOT NULL,
    session_key INTEGER NOT NULL,
    -- When it was loaded, UTC.
    loaded_at TIMESTAMP NOT NULL
);

-- Sessions whose rows in `event` were removed; their runs and aggregates stay.
CREATE TABLE thinned_session (
    session_key INTEGER NOT NULL,
    -- When they were removed, UTC.
    thinned_at TIMESTAMP NOT NULL
);

-- What people decided about nights, as recorded beside the bundles (tasks/judge/decisions.py). No key: DuckDB refuses
-- one that was deleted in the same transaction.
CREATE TABLE decision (
    -- Id of the decision, the name of its file beside the bundles.
    decision_id VARCHAR NOT NULL,
    -- baseline_reset, night_exclusion, acceptance, note, missing_file or revocation.
    kind VARCHAR NOT NULL,
    -- First night of the new baseline, the excluded night, the onset of the accepted incident, the good night whose
    -- file is missing, or the night of a note; NULL in a revocation and in other notes.
    night DATE,
    -- Only series of this model; NULL for every model.
    model VARCHAR,
    -- Only series of this precision.
    precision VARCHAR,
    -- Only series of this variant.
    variant VARCHAR,
    -- Only sessions of this device.
    device VARCHAR,
    -- Why, in the words of the user; the text of a note; the missing file: .pte file or runner.
    reason VARCHAR NOT NULL,
    -- When it was recorded, UTC.
    decided_at TIMESTAMP NOT NULL,
    -- User and host that recorded it.
    decided_by VARCHAR NOT NULL,
    -- Id of the decision that a revocation revokes; NULL in others.
    revokes VARCHAR
);

-- One row per execution.
CREATE TABLE run (
    -- Number of the run inside this warehouse.
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL,
    -- Position of the run in its session, from 0.
    run_index INTEGER NOT NULL,
    -- Whether the run is excluded from statistics.
    is_warmup BOOLEAN NOT NULL,
    -- Start of the run in nanoseconds, on the clock of the device.
    start_ns BIGINT NOT NULL,
    -- Nanoseconds of Method::execute, end to end.
    execute_ns BIGINT NOT NULL
);

-- The one big table, without keys: one row per profile event of an execution.
CREATE TABLE event (
    run_id BIGINT NOT NULL,
    node_id INTEGER NOT NULL,
    -- Nanoseconds from the start of the run to the start of the event.
    start_ns BIGINT NOT NULL,
    -- Nanoseconds that the event lasted.
    dur_ns BIGINT NOT NULL,
    -- Nanoseconds that it lasted without its children.
    self_ns BIGINT NOT NULL
);

-- What may be pooled is one content: each session belongs to one cell, by the rule in loading/cell_add.sql. No keys:
-- all cells are computed again when that rule changes, and DuckDB refuses a key that was deleted in the same
-- transaction.
CREATE TABLE cell (
    -- Number of the cell inside this warehouse.
    cell_id INTEGER NOT NULL,
    -- Id of the cell, 16 hexadecimal digits: equal only for sessions of one content (see cell_overview), and the same
    -- in every warehouse.
    cell VARCHAR NOT NULL,
    -- Id of the pair of cells that are equal but for SME2.
    pair VARCHAR NOT NULL,
    -- Like cell, but equal for all modes, executions and warm-up.
    subject VARCHAR NOT NULL,
    -- Like subject, but equal for all variants.
    subject_pair VARCHAR NOT NULL,
    sweep_id VARCHAR NOT NULL,
    night DATE,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
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
    -- SHA-256 of the runner's source, or of the runner if its source is unknown; runners that differ in it are never
    -- mixed. NULL for a loose ETDump.
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
    -- Like cell, but equal for all variants and numbers of threads.
    thread_group VARCHAR,
    transport VARCHAR,
    launcher VARCHAR
);

-- The cell of each session.
CREATE TABLE session_cell (
    session_key INTEGER NOT NULL,
    cell_id INTEGER NOT NULL
);

-- Aggregates begin here, refreshed in the transaction of the load that changes them. A session has one time: the mean
-- of its typical runs, and so has each of its parts.
CREATE TABLE typical_run (
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL
);

-- Where the time of each run went.
CREATE TABLE run_summary (
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL,
    -- Nanoseconds in delegated operators.
    delegated_ns BIGINT NOT NULL,
    -- Nanoseconds in portable operators.
    portable_ns BIGINT NOT NULL,
    -- Nanoseconds in other operators.
    other_ns BIGINT NOT NULL,
    -- The rest of Method::execute.
    unattributed_ns BIGINT NOT NULL
);

-- The time of each node in a session.
CREATE TABLE session_node (
    session_key INTEGER NOT NULL,
    node_id INTEGER NOT NULL,
    -- Calls over the typical runs of the session.
    calls BIGINT NOT NULL,
    -- Nanoseconds over the typical runs of the session, without children.
    self_ns HUGEINT NOT NULL
);

-- The time of a session in its cell, computed again with its cell.
CREATE TABLE session_time (
    session_key INTEGER NOT NULL,
    -- Runs that the time is the mean of.
    typical_runs BIGINT NOT NULL,
    -- Nanoseconds of Method::execute, over these runs.
    execute_ns HUGEINT NOT NULL,
    -- Whether the time of its cell is the mean of this session and others.
    is_typical BOOLEAN NOT NULL
);

-- What SQL cannot express well about the runs of a session: one row per timing session that succeeded. Sessions that
-- are not in it are computed at the next load, so a migration that empties it makes a changed rule apply to all of
-- them.
CREATE TABLE session_statistic (
    session_key INTEGER NOT NULL,
    -- Measured runs at the start that look like further warm-up; NULL with fewer than 10 measured runs.
    settled_after_runs INTEGER,
    -- Change of the latency over the session as a share of the median.
    drift_share DOUBLE,
    -- Median of the last quarter of the measured runs over that of the first.
    quartile_ratio DOUBLE,
    -- Measured runs with a modified z-score above 5.
    outlier_runs INTEGER,
    -- Whether the measured runs have two modes.
    is_bimodal BOOLEAN
);

-- The time of each operator in the time of a cell.
CREATE TABLE cell_operator (
    cell_id INTEGER NOT NULL,
    -- delegated, portable or other; method, delegate_call and operator_call for the unattributed time inside
    -- Method::execute itself and inside the calls of delegates and operators.
    kind VARCHAR NOT NULL,
    operator VARCHAR NOT NULL,
    layout VARCHAR,
    data_type VARCHAR,
    microkernel VARCHAR,
    -- Calls in one run: the mean of the same runs as time_ms.
    calls_per_run DOUBLE NOT NULL,
    -- Nanoseconds in one run: the mean of the typical runs of the typical sessions.
    time_ns DOUBLE NOT NULL,
    -- Part of Method::execute, 0 to 1: time_ms over the sum of all time_ms of the cell.
    share DOUBLE
);

-- The 95 % interval of the median of the times of its sessions, of each cell with six or more (tasks/judge/refresh.py).
-- A cell without a row is computed by the next load.
CREATE TABLE cell_interval (
    cell_id INTEGER NOT NULL,
    -- Low end in milliseconds; NULL if the time of a session is 0.
    low_ms DOUBLE,
    -- High end in milliseconds; NULL if the time of a session is 0.
    high_ms DOUBLE
);

-- What explains a changed verdict, by cell: its sources, and the state of its device before its sessions.
CREATE TABLE cell_made_from (
    cell_id INTEGER NOT NULL,
    -- All versions recorded by the newest export, JSON.
    versions JSON,
    -- Hash of the source files of the model; NULL if unknown.
    source_sha256 VARCHAR,
    -- Layers with weights in the program, and those that its recipe converted: `1 of 3`; NULL if unknown.
    converted_layers VARCHAR,
    -- Commit of the sweep file: its hash, its author, and whether files had uncommitted changes; NULL if unknown.
    source_commit STRUCT(id VARCHAR, author VARCHAR, is_dirty BOOLEAN),
    -- Median temperature of the device before its sessions, in degrees Celsius.
    temperature_c DOUBLE,
    -- Frequency governors before its sessions.
    governor VARCHAR,
    -- charging or not charging before all of its sessions; NULL if both or unknown.
    battery VARCHAR
);

-- How far the outputs of a cell are from their references, for the view cell_accuracy: a farm has millions of sessions,
-- most of which have no reference.
CREATE TABLE cell_output (
    cell_id INTEGER NOT NULL,
    -- Sessions that succeeded.
    sessions BIGINT NOT NULL,
    -- Part of them with a reference.
    compared_sessions BIGINT NOT NULL,
    -- Part of them with a limit.
    judged_sessions BIGINT NOT NULL,
    -- Part of them with an output beyond its limit.
    inaccurate_sessions BIGINT NOT NULL,
    -- Largest absolute difference from eager PyTorch in the same precision.
    max_abs_error DOUBLE,
    -- Least SNR against eager PyTorch in the same precision, in dB.
    snr_db DOUBLE,
    -- Its limit.
    min_snr_db DOUBLE,
    -- Least SNR against eager PyTorch in fp32, in dB.
    snr_fp32_db DOUBLE,
    -- Its limit.
    min_snr_fp32_db DOUBLE,
    -- Least cosine similarity with a reference, -1 to 1.
    cosine DOUBLE,
    -- Least share of rows that choose the same class as a reference.
    top1_agreement DOUBLE,
    -- Least SNR against the same program on the machine that exported it, in dB.
    snr_host_db DOUBLE,
    -- Its limit.
    min_snr_host_db DOUBLE,
    -- Most values of an inaccurate output that are NaN or infinite on one side only.
    nonfinite_mismatches BIGINT,
    -- Why it is inaccurate, as the export found; NULL if unknown.
    cause VARCHAR,
    -- Samples with an output beyond a limit; NULL without samples.
    samples_below BIGINT,
    -- Number of samples.
    samples BIGINT,
    -- Least SNR of a sample, in dB.
    snr_samples_db DOUBLE,
    -- Its limit.
    min_snr_samples_db DOUBLE,
    -- File of the worst sample.
    worst_sample VARCHAR,
    -- Least mean score of the samples.
    score DOUBLE,
    -- Its limit.
    min_score DOUBLE,
    -- Largest limit of top1_agreement.
    min_top1 DOUBLE,
    -- Least top1_agreement of the outputs that it applies to.
    judged_top1 DOUBLE,
    -- Number, from 0, of the first written token because of which it is inaccurate.
    first_difference BIGINT
);

-- One row per series, night and cell.
CREATE TABLE series_night (
    series_id VARCHAR NOT NULL,
    night DATE NOT NULL,
    cell_id INTEGER NOT NULL,
    -- Sessions behind the row.
    sessions BIGINT NOT NULL,
    -- Time of the cell in nanoseconds.
    time_ns DOUBLE,
    -- Median of the medians of its sessions, in nanoseconds.
    median_ns DOUBLE NOT NULL,
    -- Median absolute deviation of those medians in nanoseconds, not scaled by 1.4826.
    mad_ns DOUBLE NOT NULL,
    -- Fastest of those medians in nanoseconds.
    min_ns DOUBLE NOT NULL,
    -- Slowest of those medians in nanoseconds.
    max_ns DOUBLE NOT NULL,
    -- Start of the last of its sessions, UTC.
    last_started_at TIMESTAMP
);

-- What was judged of each series on each device in each night (tasks/judge/verdicts/rules.py). A series without a row
-- is judged by the next load; a load, a forgotten session or a decision that concerns a series removes its rows.
CREATE TABLE series_verdict (
    series_id VARCHAR NOT NULL,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    device VARCHAR NOT NULL,
    -- What was judged: latency, load time, first execution, peak memory, .pte size, portable share, SME coverage or
    -- output error.
    metric VARCHAR NOT NULL,
    night DATE NOT NULL,
    -- The newest cell of the night with a session that counts; NULL if there is none.
    cell VARCHAR,
    -- Sessions of the cell with such a figure.
    sessions INTEGER NOT NULL,
    -- Sessions that ran outside the limits of the sweep.
    invalid_sessions INTEGER NOT NULL,
    -- Median of its sessions, in the unit of the metric: nanoseconds, bytes, 0 to 1 of a share, or an absolute error.
    value DOUBLE,
    -- Median of the baseline nights, in the same unit.
    baseline_value DOUBLE,
    -- regression, suspected, improvement, suspected improvement, no change, inaccurate (its outputs are beyond the
    -- limit of the recipe, see cell_accuracy), failed (no session has a result, see failed_session), unclear, new,
    -- insufficient data or invalid environment.
    verdict VARCHAR NOT NULL,
    -- Median of the night over that of its baseline.
    ratio DOUBLE,
    -- Lower end of the 95 % interval of the ratio.
    low DOUBLE,
    -- Upper end of the 95 % interval of the ratio.
    high DOUBLE,
    -- Robust z of the night against its baseline.
    z DOUBLE,
    -- What the series moves by without a change, as a fraction of its median.
    noise_floor DOUBLE,
    -- Number of nights of the baseline.
    baseline_nights INTEGER NOT NULL,
    -- First night of the baseline.
    baseline_from DATE,
    -- Last night of the baseline.
    baseline_to DATE,
    -- The cell of the night baseline_to.
    baseline_cell VARCHAR,
    -- First night of the present step.
    since DATE,
    -- The verdict in a sentence.
    reason VARCHAR NOT NULL,
    -- The comparison, measured interleaved, whose sessions gave the figures; NULL if nights did.
    comparison VARCHAR,
    -- What is no longer stored of the last good night, so that a suspected night cannot be compared with it the same
    -- night: `.pte file of` or `runner of` and that night; NULL if nothing is missing.
    missing VARCHAR
);

-- What an incident consists of: one row per figure of a series on a device that it made worse, derived from the
-- verdicts by tasks/judge/incidents.py with every load. Incidents have one cause; the view incident has a row for each.
CREATE TABLE incident_series (
    -- Id of the incident, 8 hexadecimal digits: made from its kind, subject and onset, and the same in every warehouse.
    incident_id VARCHAR NOT NULL,
    -- model (another program, runner or setting made it slower or larger), device (neither changed), accuracy (outputs
    -- beyond their limit) or failure (no session has a result).
    kind VARCHAR NOT NULL,
    -- What it is about: a model, a device, `runner` and the first digits of its hash, or `commit` and its id.
    subject VARCHAR NOT NULL,
    series_id VARCHAR NOT NULL,
    -- Name of the device in the inventory.
    device VARCHAR NOT NULL,
    -- The figure that is worse, see series_verdict.
    metric VARCHAR NOT NULL,
    -- suspected, confirmed, accepted (by a decision), fixed (the figure came back) or withdrawn (it came back before it
    -- was confirmed).
    state VARCHAR NOT NULL,
    -- First bad night.
    onset DATE NOT NULL,
    -- Newest night before that does not share the change; NULL without one.
    last_good DATE,
    -- The night that confirmed it; NULL if none did.
    confirmed_on DATE,
    -- The first night of those that closed it; NULL while it is open.
    closed_on DATE,
    -- Newest night that shows it.
    last_seen DATE NOT NULL,
    -- How often it came back after it was closed.
    reopened INTEGER NOT NULL,
    -- The nights from its being closed until it came back: they do not show it.
    good_nights DATE[] NOT NULL,
    -- The night whose figures are stated: the one that confirmed it, until then the newest that shows it.
    night DATE NOT NULL,
    -- The cell of the onset; NULL if no session has a result.
    cell VARCHAR,
    -- The cell of the last good night.
    good_cell VARCHAR,
    -- Commit of the sweep file in the last good night, its first digits; NULL if unknown.
    good_commit VARCHAR,
    -- That of the onset.
    bad_commit VARCHAR,
    -- Commits of the onset that the last good night did not have, the newest first, a JSON list of
    -- {id, author, subject}; NULL if a night recorded none.
    commits JSON,
    -- Whether these are all; NULL if commits is.
    has_all_commits BOOLEAN
);

-- What was judged of the operators of each series on each device (tasks/judge/operators/rules.py): for the nights whose
-- latency changed, and for the newest. Both tables are computed again with the latency of a series.
CREATE TABLE series_operator_verdict (
    series_id VARCHAR NOT NULL,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    device VARCHAR NOT NULL,
    night DATE NOT NULL,
    -- operator or category.
    level VARCHAR NOT NULL,
    -- Name with layout, data types and kernel; the category for a category.
    operator VARCHAR NOT NULL,
    category VARCHAR NOT NULL,
    -- regression, suspected, improvement, suspected improvement, no change or insufficient data.
    verdict VARCHAR NOT NULL,
    -- Time over that of the baseline, without what all operators share; NULL for an operator that is new or gone.
    ratio DOUBLE,
    -- Lower end of the 95 % interval of the ratio; NULL if there is none.
    low DOUBLE,
    -- Upper end of the 95 % interval of the ratio; NULL if there is none.
    high DOUBLE,
    -- Nanoseconds in one run, as measured: a part of the time of the night.
    time_ns DOUBLE NOT NULL,
    -- Nanoseconds in one run: the median over the baseline nights.
    baseline_ns DOUBLE NOT NULL,
    -- Part of the change of the total, in percent; NULL if that changed by less than 1 %.
    part_percent DOUBLE
);

-- What all operators of a night share, and what changed among them in words.
CREATE TABLE series_cause (
    series_id VARCHAR NOT NULL,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    device VARCHAR NOT NULL,
    night DATE NOT NULL,
    -- What all operators share, relative to the baseline: 1.05 if each is 5 % slower.
    common_factor DOUBLE NOT NULL,
    -- Its part of the change of the total, in percent; NULL if that changed by less than 1 %.
    common_percent DOUBLE,
    -- What changed among the operators, in words; NULL if there is nothing to name.
    cause VARCHAR
);

-- How side B of each comparison compares with side A (tasks/judge/comparison.py). A comparison without a row is
-- computed by the next load; a load or a forgotten session that concerns one of its cells removes its row.
CREATE TABLE comparison_result (
    comparison VARCHAR NOT NULL,
    -- The cell of side A.
    cell_a VARCHAR NOT NULL,
    -- The cell of side B.
    cell_b VARCHAR NOT NULL,
    -- Sessions of side A that count.
    sessions_a INTEGER NOT NULL,
    -- Sessions of side B that count.
    sessions_b INTEGER NOT NULL,
    -- Time of side A in ns: the mean of the middle half of its sessions.
    time_a DOUBLE,
    -- Time of side B in ns, in the same way.
    time_b DOUBLE,
    -- time_b / time_a.
    ratio DOUBLE,
    low DOUBLE,
    high DOUBLE,
    -- different, same or unknown.
    answer VARCHAR NOT NULL,
    -- Further sessions of each side that would settle an unknown.
    more_sessions INTEGER,
    -- Probability that a session of B is slower than one of A.
    superiority DOUBLE,
    -- How sessions were compared within two states of the device, or why they could not be; NULL if it has one.
    note VARCHAR
);
