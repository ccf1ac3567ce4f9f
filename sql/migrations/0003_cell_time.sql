-- The time of each cell and of each node in it, so that a view reads a row and not all sessions.
CREATE TABLE cell_time (
    cell_id INTEGER NOT NULL,
    -- Sessions that enter statistics.
    sessions BIGINT NOT NULL,
    -- Runs that the time is the mean of: the typical runs of the typical sessions.
    typical_runs BIGINT NOT NULL,
    -- Nanoseconds of Method::execute, over these runs.
    execute_ns HUGEINT NOT NULL,
    -- The configuration that says where its operators come from, see session; NULL if none does.
    source_map_id INTEGER
);

-- The time of each node in the time of a cell.
CREATE TABLE cell_node (
    cell_id INTEGER NOT NULL,
    node_id INTEGER NOT NULL,
    -- Calls over the typical runs of the typical sessions.
    calls BIGINT NOT NULL,
    -- Nanoseconds over these runs, without children.
    self_ns HUGEINT NOT NULL
);
