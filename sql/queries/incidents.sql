-- All incidents, open ones first, of these the newest first; each with the sweep that measured its onset first.
SELECT
    incident.*,
    worst_model AS model,
    found_by,
    list_sort(
        array(
            SELECT DISTINCT part.series_id || part.device
            FROM incident_series AS part
            WHERE part.incident_id = incident.incident_id AND part.closed_on IS NULL
        )
    ) AS open_parts
FROM incident
LEFT JOIN (
    SELECT incident_id, min_by(session.sweep_id, started_at) AS found_by
    FROM incident_series AS part
    JOIN sweep ON sweep.night = part.onset
    JOIN session
        ON session.sweep_id = sweep.sweep_id AND session.series_id = part.series_id AND session.purpose IS NULL
    JOIN device ON device.device_id = session.device_id AND device.name = part.device
    GROUP BY incident_id
) AS onsets USING (incident_id)
-- A device whose roof fell comes before the models of that night.
ORDER BY
    closed_on IS NOT NULL,
    state <> 'confirmed' AND (kind <> 'device' OR roof_ratio IS NULL),
    onset DESC,
    kind <> 'device' OR roof_ratio IS NULL,
    kind,
    subject;
