-- What explains a changed verdict, by cell: what it was made from and in which state its device was before its sessions.
CREATE TABLE cell_made_from (
    cell_id INTEGER NOT NULL,
    versions JSON,
    source_sha256 VARCHAR,
    commit_name VARCHAR,
    temperature_c DOUBLE,
    governor VARCHAR,
    battery VARCHAR
);
