-- Sessions whose rows in `event` were removed; their runs and aggregates stay.
CREATE TABLE thinned_session (
    session_key INTEGER NOT NULL,
    thinned_at TIMESTAMP NOT NULL   -- UTC
);
