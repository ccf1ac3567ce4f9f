-- What explains a changed verdict, but does not decide what may be pooled: the commit of the repository that the sweep
-- file lies in, and the hash of the files that a model was made from.
ALTER TABLE session ADD COLUMN source_commit VARCHAR;
ALTER TABLE session ADD COLUMN source_is_dirty BOOLEAN;
ALTER TABLE model ADD COLUMN model_source_sha256 VARCHAR;
