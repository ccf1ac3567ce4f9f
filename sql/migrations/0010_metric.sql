-- Other figures than latency are judged as well. The verdicts are made again by the next load.
DROP TABLE series_verdict;

-- What was judged of each series on each device in each night (tasks/verdict/nights.py). A series without a row is
-- judged by the next load; a load, a forgotten session or a decision that concerns a series removes its rows.
CREATE TABLE series_verdict (
    series_id VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    metric VARCHAR NOT NULL,        -- a name of tasks/verdict/metrics.py: latency, peak memory, ...
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
