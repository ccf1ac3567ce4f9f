-- What each backend took of the exported method, the first by priority first: operators, and multiply-accumulates of
-- one execution; NULL of a bundle that does not state it.
ALTER TABLE model ADD COLUMN delegates STRUCT(backend VARCHAR, operators BIGINT, macs BIGINT)[];

-- Operators that no backend took; NULL as delegates.
ALTER TABLE model ADD COLUMN portable_operators BIGINT;

-- Multiply-accumulates of one execution that no backend took; NULL as delegates, and of a dynamic shape.
ALTER TABLE model ADD COLUMN portable_macs BIGINT;

-- The times of cells of one model with several delegates, compared (tasks/judge/delegates.py): each with XNNPACK, with
-- the fastest of its precision and with the fastest of all. A sweep without a row is computed by the next load.
CREATE TABLE delegate_result (
    sweep_id VARCHAR NOT NULL,
    cell_id INTEGER NOT NULL,
    -- The cell that it is compared with.
    reference_id INTEGER NOT NULL,
    -- Its time over that of the other; NULL if a time is 0, or the device was in one of two states.
    ratio DOUBLE,
    -- Low end of the 95 % interval; NULL if a side has fewer than 5 sessions.
    low DOUBLE,
    -- High end of the interval.
    high DOUBLE,
    -- different, same or unknown, as for any two cells.
    answer VARCHAR NOT NULL,
    -- Sessions of the side with fewer.
    sessions INTEGER NOT NULL,
    -- Seconds from the middle start of the other's sessions to the middle start of its own; NULL if both were
    -- interleaved.
    later_s DOUBLE
);

-- Models that a sweep did not export for a reason that is not an error, such as a delegate that takes no part of them.
CREATE TABLE skipped_model (
    sweep_id VARCHAR NOT NULL,
    -- Name of the device that it was skipped on; NULL for all devices of the sweep.
    device VARCHAR,
    -- Name of the model, with the delegate and the versions that its export states.
    model VARCHAR NOT NULL,
    precision VARCHAR NOT NULL,
    -- Why, in one sentence.
    reason VARCHAR NOT NULL,
    -- Name of the file in the store that states it.
    file VARCHAR NOT NULL
);
