-- The cells whose aggregates a transaction must compute again, and the series whose nights from one on it changes.
CREATE OR REPLACE TEMP TABLE touched_cell (cell_id INTEGER);
CREATE OR REPLACE TEMP TABLE touched_series (series_id VARCHAR, night DATE);
