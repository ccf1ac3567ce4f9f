-- How many operators of each exported model went to the delegate, and how many stayed portable.
SELECT
    pte_sha256,
    coalesce(sum(count) FILTER (placement = 'delegated'), 0) AS delegated,
    coalesce(sum(count) FILTER (placement = 'portable'), 0) AS portable
FROM operator_delegation
WHERE sweep_id = $sweep_id
GROUP BY pte_sha256;
