-- Reads: _sme2_operator, cell
-- How much of what SME2 could serve ran on it, by cell; by operator in sme2_operator_coverage. Names prove SME, only
-- kernels prove SME2.
CREATE OR REPLACE VIEW sme2_coverage AS
WITH
covered AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        samples,
        sme2_samples,
        sme1_samples,
        kernel_calls,
        sme2_kernel_calls,
        kernel_ms,
        sme2_kernel_ms,
        sum(time_ms) AS eligible_ms,
        coalesce(sum(time_ms) FILTER (sme_by_name = 'yes'), 0) AS sme_ms,
        coalesce(sum(time_ms) FILTER (sme_by_name = 'undecided'), 0) AS undecided_ms,
        sum(calls_per_run) AS eligible_calls,
        coalesce(sum(calls_per_run) FILTER (sme_by_name = 'yes'), 0) AS sme_calls,
        bool_and(evidence <> 'not proven') AS is_proven,
        sum(calls_per_run * sme2_share) AS sme2_calls,
        sum(calls_per_run * sme1_share) AS sme1_calls,
        CASE
            WHEN bool_and(sme_by_name <> 'undecided' OR evidence <> 'not proven')
                THEN sum(time_ms * CASE sme_by_name WHEN 'yes' THEN 1 ELSE sme2_share + sme1_share END)
                    / nullif(sum(time_ms), 0)
        END AS sme_share,
        sum(time_ms * sme2_share) / nullif(sum(time_ms), 0) AS sme2_share,
        sum(time_ms * sme1_share) / nullif(sum(time_ms), 0) AS sme1_share,
        CASE
            WHEN bool_or(evidence = 'not proven') THEN 'not proven'
            WHEN bool_or(evidence = 'selected') THEN 'selected'
            WHEN bool_or(evidence = 'executed') THEN 'executed'
            WHEN bool_or(evidence = 'counted') THEN 'counted'
            ELSE 'name'
        END AS evidence
    FROM _sme2_operator
    GROUP BY ALL
)
SELECT
    COLUMNS(_cell_name()),
    -- Milliseconds per run in the operators that SME2 could serve, see sme2_operator_coverage.
    eligible_ms,
    -- Part of eligible_ms whose names show SME, of either version.
    sme_ms,
    -- Part of eligible_ms whose names are the same with and without SME.
    undecided_ms,
    -- sme_ms / eligible_ms, 0 to 1: the part on SME of either version by names alone, a lower bound while undecided_ms
    -- is above 0.
    sme_ms / nullif(eligible_ms, 0) AS name_share,
    -- The part on SME of either version, 0 to 1, with kernels deciding what names leave undecided; NULL while something
    -- stays undecided.
    sme_share,
    -- The part on SME2 by its kernels, 0 to 1; NULL if that is not proven of every operator.
    CASE WHEN is_proven THEN sme2_share END AS proven_share,
    -- The part on SME without SME2 by its kernels, 0 to 1; NULL if that is not proven of every operator.
    CASE WHEN is_proven THEN sme1_share END AS proven_sme1_share,
    -- The weakest evidence among its operators: counted (calls of kernels), executed (sampled kernels), selected
    -- (kernels that XNNPACK chose), name (no name shows SME), or not proven.
    evidence,
    -- Calls per run of the same operators; also valid on emulated devices, whose times mean nothing.
    eligible_calls,
    -- Part of eligible_calls whose names show SME.
    sme_calls,
    -- Part of eligible_calls on SME2 by its kernels; NULL if that is not proven of every operator.
    CASE WHEN is_proven THEN sme2_calls END AS sme2_calls,
    -- The same for SME without SME2.
    CASE WHEN is_proven THEN sme1_calls END AS sme1_calls,
    -- All samples of profile sessions of the same content; NULL if there are none.
    samples::BIGINT AS executed_samples,
    -- Part of executed_samples in SME2 kernels.
    sme2_samples::BIGINT AS executed_sme2_samples,
    -- Part of executed_samples in SME kernels that are not SME2.
    sme1_samples::BIGINT AS executed_sme1_samples,
    -- executed_sme2_samples / executed_samples: part of the processor time, not of eligible_ms.
    sme2_samples / nullif(samples, 0) AS executed_sme2_share,
    -- Counted calls per run of kernels with a name that multiply matrices; NULL without a session of mode counts, or
    -- without such calls.
    kernel_calls,
    -- Part of kernel_calls in SME2 kernels.
    sme2_kernel_calls,
    -- Milliseconds of all threads in kernel_calls; NULL on emulated devices.
    CASE WHEN _has_times(emulated) THEN kernel_ms END AS kernel_ms,
    -- Part of kernel_ms in SME2 kernels.
    CASE WHEN _has_times(emulated) THEN sme2_kernel_ms END AS sme2_kernel_ms,
    runner_source,
    COLUMNS(_cell_content())
FROM covered
JOIN cell USING (cell_id, cell, sweep_id);
