-- A commit of a sweep file: its hash, its author, and whether files had uncommitted changes; NULL if unknown.
CREATE OR REPLACE MACRO _commit(source_commit, author, is_dirty) AS
    CASE WHEN source_commit IS NOT NULL THEN { id: source_commit, author: author, is_dirty: is_dirty } END;
