-- All incidents, open ones first, of these the newest first.
SELECT
    *,
    worst_model AS model,
    (
        SELECT min_by(session.sweep_id, started_at)
        FROM incident_series AS part
        JOIN _session AS session USING (series_id, device)
        WHERE part.incident_id = incident.incident_id AND session.night = part.onset AND purpose IS NULL
    ) AS found_by,
    array(
        SELECT DISTINCT part.series_id || part.device
        FROM incident_series AS part
        WHERE part.incident_id = incident.incident_id AND part.closed_on IS NULL
    ) AS open_parts
FROM incident
ORDER BY closed_on IS NOT NULL, state <> 'confirmed', onset DESC, kind, subject;
