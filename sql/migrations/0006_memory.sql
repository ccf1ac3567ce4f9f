-- Memory by owner: what a session had at four moments, and what a model needs by its program.
-- Anonymous memory of the runner before it loads the program, in bytes; on macOS the footprint. NULL if the system does
-- not tell, as in the following columns.
ALTER TABLE session ADD COLUMN start_anonymous_bytes BIGINT;
-- Pages of mapped files that were resident then, in bytes: the runner and its libraries.
ALTER TABLE session ADD COLUMN start_file_bytes BIGINT;
-- Anonymous memory when the method is loaded, before the first run.
ALTER TABLE session ADD COLUMN load_anonymous_bytes BIGINT;
-- Pages of mapped files that were resident then.
ALTER TABLE session ADD COLUMN load_file_bytes BIGINT;
-- Anonymous memory that was in swap then; 0 on macOS, whose footprint includes it.
ALTER TABLE session ADD COLUMN load_swapped_bytes BIGINT;
-- Anonymous memory that was in swap after the first run.
ALTER TABLE session ADD COLUMN model_swapped_bytes BIGINT;
-- Anonymous memory after the last run, with the recorded ETDump.
ALTER TABLE session ADD COLUMN end_anonymous_bytes BIGINT;
-- Pages of mapped files that were resident then.
ALTER TABLE session ADD COLUMN end_file_bytes BIGINT;
-- Anonymous memory that was in swap then.
ALTER TABLE session ADD COLUMN end_swapped_bytes BIGINT;
-- The largest mappings after the first run, a JSON list of {name, resident_bytes}; one session of each cell lists them.
ALTER TABLE session ADD COLUMN mappings JSON;
-- Bytes of the arenas that the runtime allocates for the method, planned at export; NULL if the program was not read.
ALTER TABLE model ADD COLUMN planned_bytes BIGINT;
-- Bytes of the planned buffers that are alive at the instruction where these are largest.
ALTER TABLE model ADD COLUMN live_bytes BIGINT;
-- The same at the shapes that are measured; NULL for static shapes, and for a .pte file from elsewhere.
ALTER TABLE model ADD COLUMN needed_bytes BIGINT;
-- Bytes of constants and initial state in the program.
ALTER TABLE model ADD COLUMN constant_bytes BIGINT;
-- Bytes that the program and its files contain for delegates: their payloads, the weights that they share by name, and
-- files of weights outside the program.
ALTER TABLE model ADD COLUMN delegate_bytes BIGINT;
-- The complete plan, JSON: see `memory` of the model in session.json.
ALTER TABLE model ADD COLUMN memory_plan JSON;
