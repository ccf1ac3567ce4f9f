-- A fact that differs, as text; before or after is NULL if it is unknown.
CREATE OR REPLACE MACRO _change(fact, before, after) AS
    { fact: fact, before: before::VARCHAR, after: after::VARCHAR };
