-- The name of a model for all its cases, such as llama of llama@tg64, with the delegate, versions and options that they
-- have.
CREATE OR REPLACE MACRO _without_case(model) AS
    regexp_replace(model, '@[^@]*$', '')
    || CASE WHEN len(_case_words(model)) > 0 THEN '@' || array_to_string(_case_words(model), ',') ELSE '' END;
