-- The recipe that converts one matrix product as this recipe converts those of a model, see tasks/export/recipes.py.
CREATE OR REPLACE MACRO _product_recipe(recipe) AS
    nullif(regexp_replace(recipe, ' except .*| (embedding|head)\w+', '', 'g'), '');
