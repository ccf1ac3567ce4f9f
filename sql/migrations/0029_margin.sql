-- How nearly the first written token that differs from a reference would have been that of the reference.
ALTER TABLE session ADD COLUMN margin_host DOUBLE;
ALTER TABLE session ADD COLUMN margin_eager DOUBLE;
