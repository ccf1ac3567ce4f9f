-- Reads: _sme2_operator
-- Whether each operator that SME2 could serve ran on it: matrix products and convolutions except depthwise ones,
-- delegated with a GEMM or IGEMM kernel, or portable.
CREATE OR REPLACE VIEW sme2_operator_coverage AS
SELECT
    COLUMNS(_cell_name()),
    operator,
    -- delegated or portable.
    kind,
    -- Convolution or GEMM.
    category,
    data_type,
    microkernel,
    calls_per_run,
    time_ms,
    sme_by_name,
    -- Part of its time on SME2, 0 to 1: the part of the kernels of the same content and data type. 0 if the name shows
    -- that it is not on SME; NULL if no kernels are known.
    sme2_share,
    -- The same for SME without SME2.
    sme1_share,
    -- What sme2_share rests on: counted (calls of kernels), executed (sampled kernels), selected (kernels that XNNPACK
    -- chose), name (which shows that it is not on SME), or not proven.
    evidence,
    -- Why it is not on SME, from the names, kernels and other operators of the same cell; NULL if it is. portable:
    -- XNNPACK did not get it; switched off: SME2 was; names: those of QP8 do not show it, a session of mode counts or
    -- profile does; kernels: those that ran are not of SME; data types or shape: another operator of its name ran on
    -- SME; never: none of its name did.
    CASE
        WHEN sme_by_name = 'yes' OR (sme_by_name = 'undecided' AND sme2_share + sme1_share > 0) THEN NULL
        WHEN kind = 'portable' THEN 'portable'
        WHEN variant = 'sme2_off' THEN 'switched off'
        WHEN sme_by_name = 'undecided' AND sme2_share IS NULL THEN 'names'
        WHEN sme_by_name = 'undecided' THEN 'kernels'
        WHEN bool_or(sme_by_name = 'yes') OVER of_the_same_kind THEN 'data types or shape'
        ELSE 'never'
    END AS likely_reason,
    sessions,
    runs,
    runner_source,
    COLUMNS(_cell_content())
FROM _sme2_operator
WINDOW of_the_same_kind AS (PARTITION BY cell_id, cell, sweep_id, operator);
