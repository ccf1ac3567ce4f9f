-- Interleaved comparisons, the newest first: of two files, of a suspected night, steps of a bisection.
SELECT
    *,
    model_a || ' ' || precision_a || ' ' || left(coalesce(pte_sha256_a, ''), 8) AS side_a,
    model_b || ' ' || precision_b || ' ' || left(coalesce(pte_sha256_b, ''), 8) AS side_b
FROM comparison
WHERE purpose != 'noise'
ORDER BY night DESC NULLS LAST, device, side_a, comparison;
