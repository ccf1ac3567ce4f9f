-- Whether a model is the matrix product that measures the roof of a device, with any versions and options. It is not a
-- model: what lists, ranks or adds up models leaves it out.
CREATE OR REPLACE MACRO _is_roof(model) AS model = 'roof' OR starts_with(model, 'roof@');
