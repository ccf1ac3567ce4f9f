-- What was judged of the operators of each series on each device (tasks/verdict/operators.py): for the nights whose
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
