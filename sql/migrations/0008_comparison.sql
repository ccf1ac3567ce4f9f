-- Sessions that were measured alternately with those of another content, to compare the two. They belong to no series
-- and no night: `purpose` is NULL for the sessions of a sweep's own matrix.
ALTER TABLE session ADD COLUMN purpose VARCHAR;         -- same_night | comparison | bisection | noise
ALTER TABLE session ADD COLUMN comparison VARCHAR;      -- id, the same for both arms
ALTER TABLE session ADD COLUMN arm VARCHAR;             -- a | b
ALTER TABLE cell ADD COLUMN purpose VARCHAR;
ALTER TABLE cell ADD COLUMN comparison VARCHAR;
ALTER TABLE cell ADD COLUMN arm VARCHAR;

-- How side B of each comparison compares with side A (tasks/verdict/comparison.py). A comparison without a row is
-- computed by the next load; a load or a forgotten session that concerns one of its cells removes its row.
CREATE TABLE comparison_result (
    comparison VARCHAR NOT NULL,
    cell_a VARCHAR NOT NULL,
    cell_b VARCHAR NOT NULL,
    sessions_a INTEGER NOT NULL,
    sessions_b INTEGER NOT NULL,
    median_a DOUBLE,                -- median of the medians of its sessions, in ns
    median_b DOUBLE,
    ratio DOUBLE,
    low DOUBLE,
    high DOUBLE,
    answer VARCHAR NOT NULL,        -- different | same | unknown
    more_sessions INTEGER,
    superiority DOUBLE
);
