-- The cells of the series in `series_to_judge` of which predictions are made: the newest of each series on each device,
-- and the last one before the program or runner changed. Predictions of other cells are removed.
CREATE OR REPLACE TEMP TABLE cell_to_predict AS
WITH
judged AS (
    SELECT series_id, device, night, cell, cell_before, max(night) OVER (PARTITION BY series_id, device) AS newest
    FROM series_verdict
    JOIN series_to_judge USING (series_id, device)
    WHERE metric = 'latency' AND night >= first_night AND value IS NOT NULL
),
step AS (
    SELECT
        series_id,
        judged.device,
        now.cell_id,
        judged.night = newest AS is_newest,
        before.cell_id AS before_id,
        (now.pte_sha256 IS DISTINCT FROM before.pte_sha256 OR now.runner_source IS DISTINCT FROM before.runner_source)
            AS is_changed
    FROM judged
    JOIN cell AS now ON now.cell = judged.cell
    LEFT JOIN cell AS before ON before.cell = cell_before
    WHERE NOT _is_roof(now.model)
)
SELECT series_id, device, cell_id, bool_or(is_predicted) AS is_predicted
FROM (
    SELECT series_id, device, cell_id, is_newest AS is_predicted FROM step
    UNION ALL
    SELECT series_id, device, before_id, is_changed FROM step WHERE before_id IS NOT NULL
)
GROUP BY series_id, device, cell_id;
DELETE FROM prediction WHERE cell_id IN (SELECT cell_id FROM cell_to_predict WHERE NOT is_predicted);
DELETE FROM cell_to_predict
WHERE NOT is_predicted OR cell_id IN (SELECT cell_id FROM prediction);
