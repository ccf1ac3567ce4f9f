-- Reads: _session, sweep
-- The nights of series that were measured later (`etfarm sweep --night A..B`), and when: a row for each such sweep, and
-- one without a sweep if the night has no other sessions of the series.
CREATE OR REPLACE VIEW _measured_later AS
SELECT series_id, device, night, sweep_id, max(started_at)::DATE AS measured_later
FROM _session
JOIN (SELECT sweep_id, measured_later AS is_later FROM sweep) AS of_sweep USING (sweep_id)
WHERE purpose IS NULL AND series_id IS NOT NULL AND night IN (SELECT night FROM sweep WHERE sweep.measured_later)
GROUP BY GROUPING SETS ((series_id, device, night, sweep_id), (series_id, device, night)) -- noqa: CP02
HAVING bool_and(coalesce(is_later, FALSE));
