-- Whether the sessions of the sweep were measured after its night, with the runners of that night; NULL if not.
ALTER TABLE sweep ADD COLUMN measured_later BOOLEAN;

-- The day on which the night was measured, if that was later; NULL otherwise. The next load judges all nights again.
ALTER TABLE series_verdict ADD COLUMN measured_later DATE;
