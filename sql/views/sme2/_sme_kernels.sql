-- Reads: kernel, session, session_cell, cell
-- Which version of SME kernels of each content are, by packed data type: sampled ones, or selected ones where none was
-- sampled.
CREATE OR REPLACE VIEW _sme_kernels AS
WITH
counted AS (
    SELECT
        subject,
        sweep_id,
        _packed_as(data_type) AS packed_as,
        evidence,
        coalesce(sum(weight) FILTER (isa_family = 'SME2'), 0) AS sme2_weight,
        coalesce(sum(weight) FILTER (isa_family = 'SME'), 0) AS sme1_weight,
        sum(weight) AS weight
    FROM (
        SELECT session_key, data_type, evidence, isa_family, sum(weight) AS weight
        FROM kernel
        -- Kernels that pack data for SME2 have names of SME; only products are evidence.
        WHERE regexp_matches(operation, '^i?(gemm|matmul)')
        GROUP BY session_key, data_type, evidence, isa_family
    )
    JOIN session USING (session_key)
    JOIN session_cell USING (session_key)
    JOIN cell USING (cell_id, sweep_id)
    WHERE status = 'succeeded'
    GROUP BY subject, sweep_id, packed_as, evidence
),
-- Operators of dynamic int8 have the same name without SME; the names of all others prove SME of one version.
deciding AS (
    SELECT *, CASE packed_as WHEN 'QP8' THEN weight ELSE sme1_weight + sme2_weight END AS deciding_weight
    FROM counted
)
SELECT
    subject,
    sweep_id,
    -- Data type in the names of operators: PF32, PF16, PQS8 or QP8.
    packed_as,
    -- executed or selected.
    evidence,
    -- Part that is SME2, 0 to 1.
    sme2_weight / deciding_weight AS sme2_share,
    -- Part that is SME without SME2, 0 to 1.
    sme1_weight / deciding_weight AS sme1_share
FROM deciding
WHERE deciding_weight > 0
QUALIFY row_number() OVER (PARTITION BY subject, sweep_id, packed_as ORDER BY evidence = 'executed' DESC) = 1;
