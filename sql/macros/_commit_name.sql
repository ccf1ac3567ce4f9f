CREATE OR REPLACE MACRO _commit_name(source_commit, is_dirty) AS
    left(source_commit, 7) || CASE WHEN is_dirty THEN ' with uncommitted changes' ELSE '' END;

COMMENT ON MACRO _commit_name IS 'A commit as verdicts name it; NULL if it is unknown.';
