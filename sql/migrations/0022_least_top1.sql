-- The share of equal choices that the sweep file asks of the outputs; NULL if it states none.
ALTER TABLE session ADD COLUMN least_top1 DOUBLE;
