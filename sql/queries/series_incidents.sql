-- Every figure of a series that is part of an incident, open or closed, by device.
SELECT series_id, device, incident_id, kind, metric, state, onset, closed_on
FROM incident_series
ORDER BY device, series_id, onset, metric;
