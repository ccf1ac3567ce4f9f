-- What was measured in turns on a device, the newest first: files, the night of a suspicion, steps of a search.
SELECT
    night,
    device,
    CASE purpose
        WHEN 'same_night' THEN 'suspected night' WHEN 'comparison' THEN 'two files' WHEN 'bisection' THEN 'bisection'
        ELSE purpose
    END AS purpose,
    model_a || ' ' || precision_a || ' ' || left(coalesce(pte_sha256_a, ''), 8) AS side_a,
    model_b || ' ' || precision_b || ' ' || left(coalesce(pte_sha256_b, ''), 8) AS side_b,
    cell_a,
    cell_b,
    time_a_ms,
    time_b_ms,
    ratio,
    low,
    high,
    answer,
    changed
FROM comparison
WHERE purpose != 'noise'
ORDER BY night DESC NULLS LAST, device, side_a, comparison;
