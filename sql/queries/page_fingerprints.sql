-- The content that pages are made from, as a number for each night, model, device, its weeks, and sweep.
-- It changes with their content.
WITH
judged AS (
    SELECT
        night,
        device,
        date_trunc('week', night)::DATE AS week,
        series_id,
        bit_xor(hash(series_verdict)) AS fingerprint
    FROM series_verdict
    GROUP BY GROUPING SETS ((night), (device, date_trunc('week', night)::DATE), (series_id)) -- noqa: CP02
),
ended AS (
    SELECT sweep_id, device_id, bit_xor(hash(session_key, status)) AS fingerprint
    FROM session
    GROUP BY sweep_id, device_id
),
parts AS (
    SELECT 'night' AS kind, night::VARCHAR AS name, fingerprint FROM judged WHERE night IS NOT NULL
    UNION ALL
    SELECT 'night', night::VARCHAR, fingerprint FROM ended JOIN sweep USING (sweep_id) WHERE night IS NOT NULL
    UNION ALL
    SELECT 'week', device || '/' || week, fingerprint FROM judged WHERE week IS NOT NULL
    UNION ALL
    SELECT 'device', device, fingerprint FROM judged WHERE device IS NOT NULL
    UNION ALL
    SELECT 'device', device.name, fingerprint FROM ended JOIN device USING (device_id)
    UNION ALL
    SELECT 'model', model, fingerprint FROM judged JOIN series USING (series_id)
    UNION ALL
    SELECT 'sweep', sweep_id, fingerprint FROM ended
    UNION ALL
    SELECT 'decisions', '', coalesce(bit_xor(hash(decision)), 0) FROM decision
)
SELECT kind, name, bit_xor(fingerprint)::VARCHAR AS fingerprint
FROM parts
GROUP BY kind, name
ORDER BY kind, name;
