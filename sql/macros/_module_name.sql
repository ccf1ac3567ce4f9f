-- The module that the time of a node counts for, or why it counts for none.
CREATE OR REPLACE MACRO _module_name(kind, certainty, module_path) AS CASE
    WHEN NOT _is_operator(kind) THEN 'Unattributed'
    WHEN certainty = 'inserted' THEN 'Inserted'
    WHEN module_path IS NULL THEN 'Unknown'
    ELSE module_path
END;
