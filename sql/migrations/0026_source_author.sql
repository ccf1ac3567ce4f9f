-- Whom to ask about a change, and on which branch it was measured.
ALTER TABLE session ADD COLUMN source_author VARCHAR;
ALTER TABLE session ADD COLUMN source_branch VARCHAR;
