-- Where operators come from in the model, once per configuration: one sources.json and one operator tree. The same name
-- may be another operator with SME2 on and off, since XNNPACK numbers equal names.
CREATE TABLE source_map (
    source_map_id INTEGER NOT NULL,
    content_sha256 VARCHAR NOT NULL, -- of model, sources.json and tree
    model_id INTEGER NOT NULL
);

CREATE TABLE node_source (
    source_map_id INTEGER NOT NULL,
    node_id INTEGER,                -- NULL for a node of a delegate's graph that did not run
    chain_index BIGINT NOT NULL,
    instruction_id BIGINT NOT NULL,
    module_path VARCHAR,            -- '' is the model itself; NULL if unknown
    source_operator VARCHAR,
    file_line VARCHAR,
    fused_with VARCHAR,
    delegate_node VARCHAR,
    certainty VARCHAR NOT NULL,     -- known | ambiguous | inserted | unknown | not executed
    note VARCHAR
);

CREATE TABLE module_class (
    source_map_id INTEGER NOT NULL,
    module_path VARCHAR NOT NULL,
    module_class VARCHAR
);

ALTER TABLE session ADD COLUMN source_map_id INTEGER; -- NULL for a session without sources.json or without runs
