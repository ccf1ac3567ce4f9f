-- The exported models of the sweep and how many of their operators were delegated; a failed export has no hash.
WITH
delegation AS (
    SELECT
        pte_sha256,
        coalesce(sum(count) FILTER (placement = 'delegated'), 0) AS delegated,
        coalesce(sum(count) FILTER (placement = 'portable'), 0) AS portable
    FROM operator_delegation
    WHERE sweep_id = $sweep_id
    GROUP BY pte_sha256
)
SELECT
    * REPLACE (versions ->> 'executorch' AS executorch_version),
    converted_weights / nullif(layer_weights, 0) AS converted_share,
    versions ->> 'torch' AS torch_version,
    versions ->> 'transformers' AS transformers_version
FROM model_overview
LEFT JOIN delegation USING (pte_sha256)
WHERE sweep_id = $sweep_id AND pte_sha256 IS NOT NULL
ORDER BY model, precision <> 'fp32', precision, pte_sha256;
