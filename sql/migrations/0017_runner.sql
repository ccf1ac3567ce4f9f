-- What the runner reports since its version 1.1.
ALTER TABLE session ADD COLUMN model_peak_resident_bytes BIGINT;
ALTER TABLE session ADD COLUMN outputs_repeat BOOLEAN;

-- Median nanoseconds of an execution by the runner's own clock: with an ETDump, and without one at the end.
ALTER TABLE session ADD COLUMN traced_ns DOUBLE;
ALTER TABLE session ADD COLUMN untraced_ns DOUBLE;

-- Processor time of all threads while they were sampled.
ALTER TABLE kernel_profile ADD COLUMN cpu_ns BIGINT;
