-- All incidents, open ones first, of these the newest first.
SELECT
    *,
    worst_model AS model,
    array(
        SELECT DISTINCT part.series_id || part.device
        FROM incident_series AS part
        WHERE part.incident_id = incident.incident_id AND part.closed_on IS NULL
    ) AS open_parts
FROM incident
ORDER BY closed_on IS NOT NULL, state <> 'confirmed', onset DESC, kind, subject;
