-- Models without a verdict: only devices without times measured them, or no session succeeded. Each with its newest
-- sweep, and the devices and precisions in it.
SELECT
    model,
    night,
    sweep_id,
    list(DISTINCT device ORDER BY device) AS devices,
    string_agg(DISTINCT precision, ', ' ORDER BY precision) AS precisions
FROM cell
ANTI JOIN (SELECT model FROM series SEMI JOIN series_verdict USING (series_id)) AS judged USING (model)
WHERE purpose IS NULL AND night IS NOT NULL AND NOT _is_roof(model)
GROUP BY model, night, sweep_id
QUALIFY row_number() OVER (PARTITION BY model ORDER BY night DESC, sweep_id DESC) = 1
ORDER BY model;
