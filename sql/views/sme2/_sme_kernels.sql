-- Reads: _product_kernel
-- Which version of SME kernels of each content are, by packed data type and by the strongest evidence: counted calls,
-- else samples, else selected kernels.
CREATE OR REPLACE VIEW _sme_kernels AS
WITH
weighed AS (
    SELECT
        subject,
        sweep_id,
        packed_as,
        evidence,
        isa_family,
        -- Of counted calls, their time where it means anything: a call takes a nanosecond or more.
        CASE WHEN evidence = 'counted' AND _has_times(emulated) THEN greatest(ns, weight) ELSE weight END AS weight
    FROM _product_kernel
    WHERE evidence <> 'compiled'
),
summed AS (
    SELECT
        subject,
        sweep_id,
        packed_as,
        evidence,
        coalesce(sum(weight) FILTER (isa_family = 'SME2'), 0) AS sme2_weight,
        coalesce(sum(weight) FILTER (isa_family = 'SME'), 0) AS sme1_weight,
        sum(weight) AS weight
    FROM weighed
    GROUP BY subject, sweep_id, packed_as, evidence
),
-- Operators of dynamic int8 have the same name without SME; the names of all others prove SME of one version.
deciding AS (
    SELECT
        *,
        list_position(['counted', 'executed', 'selected'], evidence) AS rank,
        CASE packed_as WHEN 'QP8' THEN weight ELSE sme1_weight + sme2_weight END AS deciding_weight
    FROM summed
)
SELECT
    subject,
    sweep_id,
    -- Data type in the names of operators: PF32, PF16, PQS8 or QP8.
    packed_as,
    -- counted, executed or selected.
    evidence,
    -- Part that is SME2, 0 to 1: of the time in counted calls, or of the calls of an emulated device; of samples; of
    -- selected kernels.
    sme2_weight / deciding_weight AS sme2_share,
    -- Part that is SME without SME2, 0 to 1.
    sme1_weight / deciding_weight AS sme1_share
FROM deciding
WHERE deciding_weight > 0
QUALIFY row_number() OVER (PARTITION BY subject, sweep_id, packed_as ORDER BY rank) = 1;
