-- What views show beside a verdict, so that they read rows and not all cells or all nights. The next load judges all
-- nights again and fills these columns, since the rules of the verdicts are of another version.
-- The sweep of the cell.
ALTER TABLE series_verdict ADD COLUMN sweep_id VARCHAR;
-- What differs from the cell of the last good night; NULL if nothing does.
ALTER TABLE series_verdict ADD COLUMN changed STRUCT(fact VARCHAR, "before" VARCHAR, "after" VARCHAR)[];
-- The last earlier night with a value; this and the next three are of the latency only.
ALTER TABLE series_verdict ADD COLUMN night_before DATE;
-- Its value.
ALTER TABLE series_verdict ADD COLUMN value_before DOUBLE;
-- Its cell.
ALTER TABLE series_verdict ADD COLUMN cell_before VARCHAR;
-- noise_floor over the median of those of earlier nights.
ALTER TABLE series_verdict ADD COLUMN noise_floor_change DOUBLE;
