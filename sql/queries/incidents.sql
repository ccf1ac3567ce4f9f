-- All incidents, open ones first, of these the newest first; each with the sweep that measured its onset first, and
-- with the operators that its largest change is due to, and how many sessions of all its series failed.
SELECT
    incident.*,
    worst_model AS model,
    found_by,
    caused.cause,
    measured_series,
    failed_sessions,
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
LEFT JOIN (
    SELECT incident_id, count(distinct(part.series_id, part.device)) AS measured_series
    FROM incident_series AS part
    JOIN series_verdict AS newest USING (series_id, device)
    WHERE part.closed_on IS NULL AND newest.night = (SELECT max(night) FROM series_verdict)
    GROUP BY incident_id
) USING (incident_id)
LEFT JOIN (
    SELECT incident_id, count(distinct(device, session.series_id, sweep_id, repetition)) AS failed_sessions
    FROM incident_series AS part
    JOIN _session AS session USING (series_id, device, night)
    WHERE part.kind = 'failure' AND status = 'failed' AND mode = 'timing' AND purpose IS NULL
    GROUP BY incident_id
) USING (incident_id)
LEFT JOIN series_cause AS caused
    ON caused.series_id = incident.series_id AND caused.device = worst_device AND caused.night = incident.night
-- A device whose roof fell comes before the models of that night.
ORDER BY
    closed_on IS NOT NULL,
    state <> 'confirmed' AND (kind <> 'device' OR roof_ratio IS NULL),
    onset DESC,
    kind <> 'device' OR roof_ratio IS NULL,
    kind,
    subject;
