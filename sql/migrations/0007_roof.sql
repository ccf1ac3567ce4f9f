-- The work of operators and the limits of a device, which operator_roofline compares.
-- Multiply-accumulates of one call; NULL if unknown.
ALTER TABLE node_source ADD COLUMN macs BIGINT;
-- Bytes that one call reads and writes, weights included; NULL if unknown.
ALTER TABLE node_source ADD COLUMN bytes BIGINT;
-- How fast the runner reads memory of several sizes after the session, on as many threads; NULL if it was not measured.
ALTER TABLE session ADD COLUMN read_speeds STRUCT(bytes BIGINT, bytes_per_s BIGINT)[];
-- Median clock of the fastest core after its sessions, in MHz; NULL if unknown.
ALTER TABLE cell_made_from ADD COLUMN clock_mhz DOUBLE;
