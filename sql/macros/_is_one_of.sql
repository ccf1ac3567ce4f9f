-- Whether a key of a table is one of a few; the range lets DuckDB skip the parts of the table that have none of them.
CREATE OR REPLACE MACRO _is_one_of(key, keys) AS
    key BETWEEN list_min(keys) AND list_max(keys) AND list_contains(keys, key);
