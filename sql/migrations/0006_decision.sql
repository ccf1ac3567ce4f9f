-- What people decided about nights, as recorded beside the bundles (tasks/verdict/decisions.py). No key: DuckDB refuses
-- one that was deleted in the same transaction.
CREATE TABLE decision (
    decision_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    night DATE,                     -- NULL in a revocation
    model VARCHAR,                  -- NULL here and below: of every series
    precision VARCHAR,
    variant VARCHAR,
    device VARCHAR,
    reason VARCHAR NOT NULL,
    decided_at TIMESTAMP NOT NULL,  -- UTC
    decided_by VARCHAR NOT NULL,
    revokes VARCHAR                 -- in a revocation
);
