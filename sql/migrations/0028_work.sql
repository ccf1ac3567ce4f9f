-- What one execution of a model has to do at least, and how fast the memory of its device can be read.
ALTER TABLE model ADD COLUMN macs BIGINT;
ALTER TABLE model ADD COLUMN read_bytes BIGINT;
ALTER TABLE session ADD COLUMN memory_read_bytes_per_s BIGINT;
-- A prompt that is read in chunks: the set-up reads all but the last one.
ALTER TABLE model ADD COLUMN prompt_tokens BIGINT;
ALTER TABLE session ADD COLUMN setup_ns BIGINT;
