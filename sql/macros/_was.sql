-- What a fact was and what it is now, as text.
CREATE OR REPLACE MACRO _was(before, now) AS coalesce(before::VARCHAR, 'unknown')
|| ' -> '
|| coalesce(now::VARCHAR, 'unknown');
