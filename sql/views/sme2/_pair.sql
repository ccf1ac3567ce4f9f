-- Reads: cell
-- Cells that are equal but for SME2, with one side or both.
CREATE OR REPLACE VIEW _pair AS
SELECT
    pair,
    sweep_id,
    -- Like subject, but equal for all variants.
    any_value(subject_pair) AS subject_pair,
    -- Date of the sweep; NULL for a loose ETDump.
    any_value(night) AS night,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    any_value(device) AS device,
    -- Whether the device is emulated or simulated, so that its times mean nothing; NULL for a loose ETDump.
    any_value(emulated) AS emulated,
    -- Name of the model, as model@case if it is measured in several ways (methods, shapes); the name of the file for a
    -- loose ETDump.
    any_value(model) AS model,
    -- Precision of the exported model, such as fp32 or int8_static; `unknown` for a loose ETDump.
    any_value(precision) AS precision,
    -- timing, profile, counts, trace, numerics or selected; only timing counts as latency.
    any_value(mode) AS mode,
    -- Requested threads; NULL for a loose ETDump.
    any_value(threads) AS threads,
    -- SHA-256 of the runner's source, or of the runner if its source is unknown; runners that differ in it are never
    -- mixed. NULL for a loose ETDump.
    any_value(runner_source) AS runner_source,
    -- SHA-256 of the .pte file; NULL if the export failed.
    any_value(pte_sha256) AS pte_sha256,
    -- SHA-256 over all files of the runner.
    any_value(runner_sha256) AS runner_sha256,
    -- Serial number of the device; NULL if unknown.
    any_value(serial) AS serial,
    -- Build of the device's operating system; NULL if unknown.
    any_value(build) AS build
FROM cell
WHERE variant IN ('sme2_on', 'sme1', 'sme2_off')
GROUP BY pair, sweep_id;
