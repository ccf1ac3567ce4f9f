-- The words in the name of a case that state a delegate, a version or an option, such as ['delegate=openvino',
-- 'load=mmap']. The rule of tasks/bundle/runtime.py.
CREATE OR REPLACE MACRO _case_words(model) AS
    list_filter(
        string_split(regexp_extract(model, '@([^@]*)$', 1), ','),
        LAMBDA word: regexp_full_match(word, '[a-z][a-z0-9_]*=[A-Za-z0-9][A-Za-z0-9_.+:-]*')
    );
