-- Memory that does not belong to files, resident after the first run, in bytes; on macOS the footprint. NULL if the
-- system does not tell.
ALTER TABLE session ADD COLUMN model_anonymous_bytes BIGINT;
-- Pages of mapped files that were resident then, in bytes: libraries, a program that is loaded by mmap, a cache on
-- disk. The system can drop them and read them again.
ALTER TABLE session ADD COLUMN model_file_bytes BIGINT;
-- Nanoseconds to load the model at the first of two starts, which writes a cache on disk; NULL without such a cache.
ALTER TABLE session ADD COLUMN first_load_ns BIGINT;
-- Peak memory in bytes of that first start, with one run.
ALTER TABLE session ADD COLUMN first_peak_memory_bytes BIGINT;
-- Bytes of the cache that it wrote.
ALTER TABLE session ADD COLUMN cache_bytes BIGINT;
