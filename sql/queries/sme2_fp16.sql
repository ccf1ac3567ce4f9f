-- Fully Connected calls of fp16 models that stay plain F16 although SME2 is on, and how many are convolutions in the
-- model.
WITH
convolution AS (
    SELECT cell, sum(calls_per_run) AS convolution_calls
    FROM operator_source
    WHERE sweep_id = $sweep_id
        AND operator LIKE 'Fully Connected (NC, F16)%'
        AND source_operator LIKE 'aten.convolution%'
    GROUP BY cell
),
called AS (
    SELECT
        model,
        cell,
        sum(calls_per_run) AS calls,
        sum(calls_per_run) FILTER (data_type = 'F16') AS plain_calls
    FROM sme2_operator_coverage
    WHERE sweep_id = $sweep_id AND variant = 'sme2_on' AND precision = 'fp16' AND operator = 'Fully Connected'
    GROUP BY model, cell
)
SELECT
    model,
    max(calls) AS calls,
    max(plain_calls) AS plain_calls,
    max(convolution_calls) AS convolution_calls
FROM called
LEFT JOIN convolution USING (cell)
WHERE plain_calls > 0
GROUP BY model
ORDER BY model;
