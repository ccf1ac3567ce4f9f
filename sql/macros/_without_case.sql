-- The name of a model for all its cases, such as llama of llama@tg64, with the versions and options that they have.
CREATE OR REPLACE MACRO _without_case(model) AS
    regexp_replace(model, '@[^@]*$', '')
    || CASE WHEN _runtime(model) = 'default' THEN '' ELSE '@' || _runtime(model) END;
