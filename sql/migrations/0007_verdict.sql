-- What was judged of each series on each device in each night (tasks/verdict/nights.py). A series without a row is
-- judged by the next load; a load, a forgotten session or a decision that concerns a series removes its rows.
CREATE TABLE series_verdict (
    series_id VARCHAR NOT NULL,
    device VARCHAR NOT NULL,
    night DATE NOT NULL,
    cell VARCHAR,                   -- what was judged: the newest cell of the night with a session that counts
    sessions INTEGER NOT NULL,
    invalid_sessions INTEGER NOT NULL,
    median_ns DOUBLE,               -- median of the medians of its sessions
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
