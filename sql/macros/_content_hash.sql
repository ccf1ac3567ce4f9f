-- A hash of what `_content` returns, 16 hexadecimal digits; empty if that is empty or NULL.
CREATE OR REPLACE MACRO _content_hash(content) AS coalesce(left(md5(nullif(content, '')), 16), '');
