-- A session has one time: the mean of the runs in `typical_run`, and so has each of its parts. Before, parts were means
-- of all measured runs. Sessions with events are computed again; of those without, all measured runs stay typical.
CREATE TABLE typical_run (
    run_id BIGINT NOT NULL,
    session_key INTEGER NOT NULL
);

INSERT INTO typical_run
SELECT run_id, session_key
FROM run
WHERE NOT is_warmup AND session_key IN (SELECT session_key FROM thinned_session);

-- The time of a session in its cell, made again with its cell.
CREATE TABLE session_time (
    session_key INTEGER NOT NULL,
    typical_runs BIGINT NOT NULL,
    execute_ns HUGEINT NOT NULL,    -- over these runs
    is_typical BOOLEAN NOT NULL     -- whether the time of its cell is the mean of this session and others
);

ALTER TABLE series_night ADD COLUMN time_ns DOUBLE;
ALTER TABLE comparison_result RENAME COLUMN median_a TO time_a;
ALTER TABLE comparison_result RENAME COLUMN median_b TO time_b;
