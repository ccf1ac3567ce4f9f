-- The cells whose aggregates a transaction must compute again.
CREATE OR REPLACE TEMP TABLE touched_cell (cell_id INTEGER);
