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
