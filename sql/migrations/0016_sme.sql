-- SME apart from SME2: whether the device has it, whether the runner found it, and what it told XNNPACK.
ALTER TABLE device ADD COLUMN sme BOOLEAN;
ALTER TABLE session ADD COLUMN sme_hardware BOOLEAN;
ALTER TABLE session ADD COLUMN sme_told BOOLEAN;

-- It was measured by names, which show SME of either version.
UPDATE series_verdict SET metric = 'SME coverage' WHERE metric = 'SME2 coverage';

-- The hash of a cell's content without the variant and the number of threads.
ALTER TABLE cell ADD COLUMN thread_group VARCHAR;
