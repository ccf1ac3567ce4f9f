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
    -- What sme2_share rests on: executed (sampled kernels), selected (kernels that XNNPACK chose), name (which shows
    -- that it is not on SME), or not proven.
    evidence,
    -- Why it is not on SME: from the names, kernels and other operators of the same cell. NULL if it is.
    CASE
        WHEN sme_by_name = 'yes' OR (sme_by_name = 'undecided' AND sme2_share + sme1_share > 0) THEN NULL
        WHEN kind = 'portable' THEN 'portable: XNNPACK did not get it'
        WHEN variant = 'sme2_off' THEN 'SME2 was switched off'
        WHEN sme_by_name = 'undecided' AND sme2_share IS NULL
            THEN 'names of QP8 cannot tell, a session of mode profile can'
        WHEN sme_by_name = 'undecided' THEN 'its kernels are not those of SME'
        WHEN bool_or(sme_by_name = 'yes') OVER of_the_same_kind
            THEN 'its data types or its shape: other ' || operator || ' of this model ran on SME'
        ELSE 'no ' || operator || ' of this model with these data types ran on SME'
    END AS likely_reason,
    sessions,
    runs,
    runner_source,
    COLUMNS(_cell_content())
FROM _sme2_operator
WINDOW of_the_same_kind AS (PARTITION BY cell_id, operator);
