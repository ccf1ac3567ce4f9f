-- Fully Connected calls of fp16 models that stay plain F16 although SME2 is on.
WITH
cell AS (
    SELECT
        model,
        cell,
        sum(calls_per_run) AS calls,
        sum(calls_per_run) FILTER (data_type = 'F16') AS plain_calls
    FROM sme2_operator_coverage
    WHERE sweep_id = $sweep_id AND variant = 'sme2_on' AND precision = 'fp16' AND operator = 'Fully Connected'
    GROUP BY ALL
)
SELECT
    model,
    max(calls) AS calls,
    max(plain_calls) AS plain_calls
FROM cell
WHERE plain_calls > 0
GROUP BY model
ORDER BY model;
