-- The delegate in the name of a case, such as openvino or openvino+xnnpack; xnnpack if it states none.
CREATE OR REPLACE MACRO _delegate(model) AS
    coalesce(
        list_filter(_case_words(model), LAMBDA word: starts_with(word, 'delegate='))[1][length('delegate=') + 1:],
        'xnnpack'
    );
