-- What pages are made from, as a number for each night, model, device, its weeks, and sweep.
-- It changes with their content.
WITH
judged AS (
    SELECT series_verdict.*, model, hash(series_verdict) AS fingerprint
    FROM series_verdict
    JOIN series USING (series_id)
)
SELECT 'night' AS kind, night::VARCHAR AS name, bit_xor(fingerprint)::VARCHAR AS fingerprint FROM judged GROUP BY night
UNION ALL
SELECT 'week', device || '/' || date_trunc('week', night)::DATE, bit_xor(fingerprint)::VARCHAR FROM judged GROUP BY ALL
UNION ALL
SELECT 'model', model, bit_xor(fingerprint)::VARCHAR FROM judged GROUP BY model
UNION ALL
SELECT 'device', device, bit_xor(fingerprint)::VARCHAR FROM judged GROUP BY device
UNION ALL
SELECT 'sweep', sweep_id, bit_xor(hash(session_id, status, cell_id))::VARCHAR
FROM session
LEFT JOIN session_cell USING (session_key)
GROUP BY sweep_id
UNION ALL
SELECT 'decisions', '', coalesce(bit_xor(hash(decision)), 0)::VARCHAR FROM decision
ORDER BY kind, name;
