-- The .pte files of a model that nights measured, the best first: of a night without a change for the worse on any
-- device before others, newer nights before older ones. $branch and $night may be NULL: any.
SELECT
    model.export_key,
    model.pte_sha256,
    model.name,
    _session.night,
    any_value(source_commit) AS source_commit,
    bool_or(coalesce(series_verdict.verdict IN ('regression', 'suspected', 'inaccurate'), FALSE)) AS is_worse
FROM _session
JOIN model USING (model_id)
LEFT JOIN series_verdict
    ON series_verdict.series_id = _session.series_id AND series_verdict.night = _session.night
        AND series_verdict.device = _session.device AND metric = 'latency'
WHERE status = 'succeeded' AND purpose IS NULL AND model.export_key IS NOT NULL
    AND model.name = $model AND model.precision = $precision
    AND ($branch IS NULL OR source_branch = $branch)
    AND ($night IS NULL OR _session.night::VARCHAR = $night)
GROUP BY model.export_key, model.pte_sha256, model.name, _session.night
ORDER BY is_worse, _session.night DESC, model.export_key;
