-- The versions and options in the name of a case, such as export=1.4.1,load=mmap; `default` without any. The delegate
-- is not among them.
CREATE OR REPLACE MACRO _runtime(model) AS
    coalesce(
        nullif(
            array_to_string(
                list_filter(_case_words(model), LAMBDA word: NOT starts_with(word, 'delegate=')), ','
            ),
            ''
        ),
        'default'
    );
