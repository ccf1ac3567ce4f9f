CREATE OR REPLACE VIEW _pair AS
SELECT DISTINCT
    pair,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    mode,
    threads,
    runner_source
FROM _timing_session
WHERE variant IN ('sme2_on', 'sme2_off');

COMMENT ON VIEW _pair IS 'What is measured alike but for SME2, with one side or both. Private: may change with any version.';
