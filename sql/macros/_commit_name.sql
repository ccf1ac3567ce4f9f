-- A commit and its author as verdicts name them; NULL if the commit is unknown.
CREATE OR REPLACE MACRO _commit_name(source_commit, author, is_dirty) AS
    left(source_commit, 7)
    || coalesce(' by ' || author, '')
    || CASE WHEN is_dirty THEN ' with uncommitted changes' ELSE '' END;
