-- Nanoseconds in all of its calls, of all threads together; NULL unless its calls were counted.
ALTER TABLE kernel ADD COLUMN ns BIGINT;

-- How the calls of kernels in `kernel` were counted, one row per session of mode counts.
CREATE TABLE kernel_counts (
    session_key INTEGER NOT NULL,
    -- Executions whose calls were counted, those of the warm-up included.
    executions INTEGER NOT NULL,
    -- Ticks per second of the clock that timed the calls.
    clock_hz BIGINT NOT NULL,
    -- Nanoseconds that counting adds to a call while all threads call one kernel.
    cost_ns_per_call DOUBLE NOT NULL,
    -- Kernels of KleidiAI that the XNNPACK of the runner can call, called or not.
    compiled STRUCT(name VARCHAR, operation VARCHAR, data_type VARCHAR, isa VARCHAR, isa_family VARCHAR)[] NOT NULL
);
