-- The nights of the series in `series_to_judge` that take part in verdicts: compared with a baseline, or the first of
-- one. Operators are judged of those whose latency changed, and of the newest that can be compared. What was judged of
-- other nights, and of nights without a verdict, is removed.
CREATE OR REPLACE TEMP TABLE operator_night AS
WITH
usable AS (
    SELECT
        series_id,
        device,
        night,
        first_night,
        cell,
        verdict,
        baseline_from,
        baseline_to,
        since,
        comparison,
        verdict IN ('regression', 'suspected', 'improvement', 'suspected improvement') AS is_changed,
        ratio IS NOT NULL AND (is_changed OR night = max(night) OVER (PARTITION BY series_id, device)) AS has_operators
    FROM series_verdict
    JOIN series_to_judge USING (series_id, device)
    WHERE metric = 'latency'
        AND cell IS NOT NULL
        AND (
            ratio IS NOT NULL
            OR (series_id, device, night) IN (
                SELECT (series_id, device, baseline_from) FROM series_verdict WHERE metric = 'latency'
            )
        )
)
SELECT
    * EXCLUDE (first_night),
    dense_rank() OVER (ORDER BY series_id, device) AS pair_id,
    has_operators
    AND (
        night >= first_night
        OR (series_id, device, night) NOT IN (SELECT (series_id, device, night) FROM series_cause)
    ) AS is_judged
FROM usable;

CREATE OR REPLACE TEMP TABLE unchanged_night AS
SELECT series_id, device, night
FROM series_verdict
WHERE metric = 'latency'
    AND (
        (series_id, device) NOT IN (SELECT (series_id, device) FROM series_to_judge)
        OR (series_id, device, night) IN (
            SELECT (series_id, device, night) FROM operator_night WHERE has_operators AND NOT is_judged
        )
    );
DELETE FROM series_operator_verdict
WHERE (series_id, device, night) NOT IN (SELECT (series_id, device, night) FROM unchanged_night);
DELETE FROM series_cause
WHERE (series_id, device, night) NOT IN (SELECT (series_id, device, night) FROM unchanged_night);

-- The names of operators and categories, in their order.
CREATE OR REPLACE TEMP TABLE operator_name AS
SELECT node_id, kind, operator, category, dense_rank() OVER (ORDER BY operator, category) AS operator_id
FROM _named_node;
