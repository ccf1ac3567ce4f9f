-- What is executed with a program: the method, its inputs and its set-up; and, for a language model, the tokens of one
-- execution and those in its cache before.
ALTER TABLE model ADD COLUMN method VARCHAR;
ALTER TABLE model ADD COLUMN inputs_sha256 VARCHAR;
ALTER TABLE model ADD COLUMN tokens BIGINT;
ALTER TABLE model ADD COLUMN kv_depth BIGINT;
ALTER TABLE cell ADD COLUMN method VARCHAR;
ALTER TABLE cell ADD COLUMN inputs_sha256 VARCHAR;
