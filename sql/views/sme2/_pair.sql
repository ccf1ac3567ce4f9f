CREATE OR REPLACE VIEW _pair AS
SELECT
    pair,
    sweep_id,
    any_value(subject_pair) AS subject_pair,
    any_value(night) AS night,
    any_value(device) AS device,
    any_value(emulated) AS emulated,
    any_value(model) AS model,
    any_value(precision) AS precision,
    any_value(mode) AS mode,
    any_value(threads) AS threads,
    any_value(runner_source) AS runner_source,
    any_value(pte_sha256) AS pte_sha256,
    any_value(runner_sha256) AS runner_sha256,
    any_value(serial) AS serial,
    any_value(build) AS build
FROM cell
WHERE variant IN ('sme2_on', 'sme1', 'sme2_off')
GROUP BY pair, sweep_id;

COMMENT ON VIEW _pair IS 'Cells that are equal but for SME2, with one side or both. Private: may change with any version.';
