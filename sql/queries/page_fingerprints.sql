-- The rows that pages are made from, as a number for each night, sweep, model, device, week of a device, and of the
-- farm. A number changes with their content: it is a sum of the hashes of rows, whose order does not matter; the result
-- of a comparison may be a row of several nights. Sessions count by their ids, since a bundle never changes.
WITH
judged AS (
    SELECT series_id, device, night, hash(series_verdict) AS fingerprint
    FROM series_verdict
    UNION ALL
    SELECT series_id, device, night, hash(comparison_result)
    FROM series_verdict
    JOIN comparison_result USING (comparison)
    UNION ALL
    SELECT series_id, device, night, hash(series_cause)
    FROM series_cause
    UNION ALL
    SELECT series_id, device, night, hash(series_operator_verdict)
    FROM series_operator_verdict
),
verdicts AS (
    SELECT
        night,
        device,
        date_trunc('week', night)::DATE AS week,
        series_id,
        sum(fingerprint) AS fingerprint
    FROM judged
    GROUP BY GROUPING SETS ((night), (device, date_trunc('week', night)::DATE), (series_id)) -- noqa: CP02
),
sessions AS (
    SELECT sweep_id, night, device.name AS device, date_trunc('week', night)::DATE AS week, fingerprint
    FROM (
        SELECT sweep_id, device_id, sum(hash(session_id)) AS fingerprint
        FROM session
        GROUP BY sweep_id, device_id
    )
    JOIN sweep USING (sweep_id)
    JOIN device USING (device_id)
),
-- The incident that explains what changed in a night is one that was open then.
incidents AS (
    SELECT night, sum(hash(incident_id, series_id, device, metric, onset, cell, good_cell)) AS fingerprint
    FROM (SELECT DISTINCT night FROM sweep)
    JOIN (FROM incident_series SELECT * EXCLUDE (night)) AS part
        ON onset <= night AND (closed_on IS NULL OR closed_on > night) AND NOT list_contains(good_nights, night)
    GROUP BY night
),
parts AS (
    SELECT 'night' AS kind, night::VARCHAR AS name, fingerprint FROM verdicts WHERE night IS NOT NULL
    UNION ALL
    SELECT 'night', night::VARCHAR, fingerprint FROM sessions WHERE night IS NOT NULL
    UNION ALL
    SELECT 'night', night::VARCHAR, fingerprint FROM incidents
    UNION ALL
    SELECT 'night', night::VARCHAR, hash(skipped_model) FROM skipped_model JOIN sweep USING (sweep_id)
    WHERE night IS NOT NULL
    UNION ALL
    SELECT 'week', device || '/' || week, fingerprint FROM verdicts WHERE week IS NOT NULL
    UNION ALL
    SELECT 'week', device || '/' || week, fingerprint FROM sessions WHERE week IS NOT NULL
    UNION ALL
    SELECT 'device', device, fingerprint FROM verdicts WHERE week IS NOT NULL
    UNION ALL
    SELECT 'device', device, fingerprint FROM sessions
    UNION ALL
    SELECT 'model', model, fingerprint FROM verdicts JOIN series USING (series_id)
    UNION ALL
    SELECT 'sweep', sweep_id, fingerprint FROM sessions
    UNION ALL
    SELECT 'farm', 'decisions', coalesce(sum(hash(decision)), 0) FROM decision
    UNION ALL
    SELECT 'farm', 'incidents', coalesce(sum(hash(incident_series)), 0) FROM incident_series
    UNION ALL
    SELECT 'farm', 'comparisons', coalesce(sum(hash(comparison_result)), 0) FROM comparison_result
    UNION ALL
    -- A warehouse that was built again has other rows, if its sessions were loaded by another version before.
    SELECT 'farm', 'built', coalesce(hash(min(loaded_at)), 0) FROM load_ledger
)
SELECT kind, name, sum(fingerprint)::VARCHAR AS fingerprint
FROM parts
GROUP BY kind, name
ORDER BY kind, name;
