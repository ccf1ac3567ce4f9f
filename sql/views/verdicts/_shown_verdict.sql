CREATE OR REPLACE VIEW _shown_verdict AS
WITH
judged AS (
    SELECT *, 'latency' AS metric, time_ms * 1e6 AS value, time_ms * 1e6 / ratio AS baseline_value
    FROM verdict
    UNION ALL BY NAME
    SELECT *
    FROM metric_verdict
    WHERE metric != 'latency'
        AND (
            verdict IN ('regression', 'improvement')
            OR starts_with(verdict, 'device')
            OR (verdict = 'suspected' AND (value > baseline_value) = (metric != 'SME coverage'))
        )
    QUALIFY metric != '.pte size'
        OR row_number() OVER (
            PARTITION BY sweep_id, night, model, precision, baseline_value, value ORDER BY device, threads, variant
        ) = 1
)
SELECT
    *,
    row(
        list_position(
            [
                'regression', 'inaccurate', 'suspected', 'device slower', 'device worse', 'invalid environment',
                'improvement', 'device faster', 'device better', 'insufficient data', 'no change'
            ],
            verdict
        ),
        metric != 'latency',
        -coalesce(abs(ln(nullif(ratio, 0))), -1),
        model,
        device,
        threads,
        precision <> 'fp32',
        precision,
        variant
    ) AS place
FROM judged;

COMMENT ON VIEW _shown_verdict IS 'What pages show of the verdicts: every one on latency, and the changes of other metrics, suspected ones only for the worse. The size of a .pte file is listed once, not for each series that runs it. Private: may change with any version.';
COMMENT ON COLUMN _shown_verdict.place IS 'Sorts the worst first.';
