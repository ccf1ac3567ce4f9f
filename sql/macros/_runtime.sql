-- The versions and options in the name of a case, such as export=1.4.1,load=mmap; `default` without any. The rule of
-- tasks/bundle/runtime.py.
CREATE OR REPLACE MACRO _runtime(model) AS
    coalesce(
        nullif(
            array_to_string(
                list_filter(
                    string_split(regexp_extract(model, '@([^@]*)$', 1), ','),
                    LAMBDA word: regexp_full_match(word, '[a-z][a-z0-9_]*=[A-Za-z0-9][A-Za-z0-9_.+-]*')
                ),
                ','
            ),
            ''
        ),
        'default'
    );
