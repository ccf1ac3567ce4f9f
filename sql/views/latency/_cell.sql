CREATE OR REPLACE VIEW _cell AS
SELECT
    cell,
    pair,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    runner_source,
    count(*) AS sessions,
    sum(executions - warmup_executions)::BIGINT AS runs
FROM _timing_session
WHERE executions > warmup_executions
GROUP BY ALL;

COMMENT ON VIEW _cell IS 'What is measured alike, with the sessions and runs that enter statistics. Private: may change with any version.';
