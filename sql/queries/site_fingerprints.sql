-- What pages are made from, as a number for each night, model, device, its weeks, and sweep.
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
    GROUP BY GROUPING SETS ((night), (device, date_trunc('week', night)::DATE), (series_id))
)
SELECT 'night' AS kind, night::VARCHAR AS name, fingerprint::VARCHAR AS fingerprint FROM judged WHERE night IS NOT NULL
UNION ALL
SELECT 'week', device || '/' || week, fingerprint::VARCHAR FROM judged WHERE week IS NOT NULL
UNION ALL
SELECT 'device', device, bit_xor(fingerprint)::VARCHAR FROM judged WHERE device IS NOT NULL GROUP BY device
UNION ALL
SELECT 'model', model, bit_xor(fingerprint)::VARCHAR FROM judged JOIN series USING (series_id) GROUP BY model
UNION ALL
SELECT 'sweep', sweep_id, bit_xor(hash(session_key, status, cell_id))::VARCHAR
FROM session
LEFT JOIN session_cell USING (session_key)
GROUP BY sweep_id
UNION ALL
SELECT 'decisions', '', coalesce(bit_xor(hash(decision)), 0)::VARCHAR FROM decision
ORDER BY kind, name;
