-- Whether a model is the one that a question names: a case such as llama@tg64, or llama for all its cases, with any
-- versions and options unless it states them; NULL names all models.
CREATE OR REPLACE MACRO _is_model(model, wanted) AS
    wanted IS NULL OR model = wanted OR wanted IN (regexp_replace(model, '@[^@]*$', ''), _without_case(model));
