CREATE OR REPLACE VIEW sme2_coverage AS
WITH
profile AS (
    SELECT
        sweep_id,
        device,
        model,
        precision,
        variant,
        runner_source,
        sum(weight) AS samples,
        coalesce(sum(weight) FILTER (isa_family = 'SME2'), 0) AS sme2_samples
    FROM kernel
    JOIN _session USING (session_key)
    WHERE status = 'succeeded' AND evidence = 'executed'
    GROUP BY ALL
),
covered AS (
    SELECT
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
        sum(time_ms) AS eligible_ms,
        coalesce(sum(time_ms) FILTER (sme2_by_name = 'yes'), 0) AS sme2_ms,
        coalesce(sum(time_ms) FILTER (sme2_by_name = 'undecided'), 0) AS undecided_ms,
        sum(calls_per_run) AS eligible_calls,
        coalesce(sum(calls_per_run) FILTER (sme2_by_name = 'yes'), 0) AS sme2_calls,
        CASE
            WHEN bool_and(sme2_share IS NOT NULL) THEN sum(time_ms * sme2_share) / nullif(sum(time_ms), 0)
        END AS proven_share
    FROM sme2_operator_coverage
    GROUP BY ALL
)
SELECT
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    eligible_ms,
    sme2_ms,
    undecided_ms,
    sme2_ms / nullif(eligible_ms, 0) AS name_share,
    proven_share,
    eligible_calls,
    sme2_calls,
    samples::BIGINT AS executed_samples,
    sme2_samples::BIGINT AS executed_sme2_samples,
    sme2_samples / samples AS executed_sme2_share,
    runner_source
FROM covered
LEFT JOIN profile USING (sweep_id, device, model, precision, variant, runner_source);

COMMENT ON VIEW sme2_coverage IS 'How much of what SME2 could serve ran on it, by what is measured alike; by operator in sme2_operator_coverage.';
COMMENT ON COLUMN sme2_coverage.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN sme2_coverage.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_coverage.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN sme2_coverage.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_coverage.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN sme2_coverage.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN sme2_coverage.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN sme2_coverage.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN sme2_coverage.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN sme2_coverage.eligible_ms IS 'Milliseconds per run in matrix products and convolutions but depthwise ones.';
COMMENT ON COLUMN sme2_coverage.sme2_ms IS 'Those of them whose names show SME2.';
COMMENT ON COLUMN sme2_coverage.undecided_ms IS 'Those of them whose names cannot tell (QP8).';
COMMENT ON COLUMN sme2_coverage.name_share IS 'sme2_ms / eligible_ms, 0 to 1: the part on SME2 by names alone, a lower bound while something is undecided.';
COMMENT ON COLUMN sme2_coverage.proven_share IS 'The part on SME2 with executed kernels deciding what names leave open, 0 to 1; NULL while something stays open.';
COMMENT ON COLUMN sme2_coverage.eligible_calls IS 'Calls per run of the same operators: what is left to count on emulated devices, whose times mean nothing.';
COMMENT ON COLUMN sme2_coverage.sme2_calls IS 'Those of them whose names show SME2.';
COMMENT ON COLUMN sme2_coverage.executed_samples IS 'Samples of all that ran, of profile sessions of the same sweep, device, model, precision, variant and runner source; NULL without any.';
COMMENT ON COLUMN sme2_coverage.executed_sme2_samples IS 'Those of them in SME2 kernels.';
COMMENT ON COLUMN sme2_coverage.executed_sme2_share IS 'executed_sme2_samples / executed_samples: part of the processor time, not of eligible_ms.';
COMMENT ON COLUMN sme2_coverage.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
