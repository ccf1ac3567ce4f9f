-- Whether two known commits (of _commit) differ, or may differ since one has uncommitted changes.
CREATE OR REPLACE MACRO _are_commits_unlike(before, now) AS
    before.id != now.id OR (before.id = now.id AND (before.is_dirty OR now.is_dirty));
