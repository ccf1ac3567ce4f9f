CREATE OR REPLACE VIEW sme2_coverage AS
WITH
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
        cell,
        pte_sha256,
        runner_sha256,
        serial,
        build,
        samples,
        sme2_samples,
        sum(time_ms) AS eligible_ms,
        coalesce(sum(time_ms) FILTER (sme2_by_name = 'yes'), 0) AS sme2_ms,
        coalesce(sum(time_ms) FILTER (sme2_by_name = 'undecided'), 0) AS undecided_ms,
        sum(calls_per_run) AS eligible_calls,
        coalesce(sum(calls_per_run) FILTER (sme2_by_name = 'yes'), 0) AS sme2_calls,
        CASE
            WHEN bool_and(sme2_share IS NOT NULL) THEN sum(time_ms * sme2_share) / nullif(sum(time_ms), 0)
        END AS proven_share
    FROM _sme2_operator
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
    sme2_samples / nullif(samples, 0) AS executed_sme2_share,
    runner_source,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM covered;

COMMENT ON VIEW sme2_coverage IS 'How much of what SME2 could serve ran on it, by cell; by operator in sme2_operator_coverage.';
COMMENT ON COLUMN sme2_coverage.eligible_ms IS 'Milliseconds per run in the operators that SME2 could serve, see sme2_operator_coverage.';
COMMENT ON COLUMN sme2_coverage.sme2_ms IS 'Part of eligible_ms whose names show SME2.';
COMMENT ON COLUMN sme2_coverage.undecided_ms IS 'Part of eligible_ms whose names are the same with and without SME2.';
COMMENT ON COLUMN sme2_coverage.name_share IS 'sme2_ms / eligible_ms, 0 to 1: the part on SME2 by names alone, a lower bound while undecided_ms is above 0.';
COMMENT ON COLUMN sme2_coverage.proven_share IS 'The part on SME2, 0 to 1, with sampled kernels deciding what names leave undecided; NULL while something stays undecided.';
COMMENT ON COLUMN sme2_coverage.eligible_calls IS 'Calls per run of the same operators; also valid on emulated devices, whose times mean nothing.';
COMMENT ON COLUMN sme2_coverage.sme2_calls IS 'Part of eligible_calls whose names show SME2.';
COMMENT ON COLUMN sme2_coverage.executed_samples IS 'All samples of profile sessions of the same content; NULL if there are none.';
COMMENT ON COLUMN sme2_coverage.executed_sme2_samples IS 'Part of executed_samples in SME2 kernels.';
COMMENT ON COLUMN sme2_coverage.executed_sme2_share IS 'executed_sme2_samples / executed_samples: part of the processor time, not of eligible_ms.';
