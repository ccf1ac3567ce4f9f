-- Each portable operator of each exported model: its count and reason (from the export), and its largest weight (from
-- the runs). The two name it differently, aten.mean.dim and mean; both contain the word `mean`.
WITH
-- A sweep that is resumed after a change has two .pte files of the same model.
file AS (
    SELECT
        model,
        precision,
        pte_sha256,
        regexp_extract(operator, '^(?:\w+(?:\.|::))?(\w+)', 1) AS word,
        string_agg(DISTINCT operator, ', ' ORDER BY operator) AS operator,
        sum(count) AS count,
        string_agg(DISTINCT reason, '; ' ORDER BY reason) AS reason
    FROM operator_delegation
    WHERE sweep_id = $sweep_id AND placement = 'portable'
    GROUP BY ALL
),
exported AS (
    SELECT model, precision, word, min(operator) AS operator, max(count) AS count, min(reason) AS reason
    FROM file
    GROUP BY ALL
),
heaviest AS (
    SELECT
        model,
        precision,
        regexp_extract(operator_time.operator, '^(?:\w+::)?(\w+)', 1) AS word,
        min(operator_time.operator) AS operator,
        max(operator_time.share) FILTER (_has_times(emulated)) AS share,
        arg_max(operator_time.device, operator_time.share) FILTER (_has_times(emulated)) AS device
    FROM operator_time
    WHERE sweep_id = $sweep_id AND kind = 'portable'
    GROUP BY ALL
)
SELECT
    model,
    precision,
    coalesce(exported.operator, heaviest.operator) AS operator,
    count,
    reason,
    share,
    device
FROM exported
FULL JOIN heaviest USING (model, precision, word)
ORDER BY model, precision <> 'fp32', precision, share DESC NULLS LAST, operator;
