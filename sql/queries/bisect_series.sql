-- The series with verdicts, on each device: what a bisection may be about.
SELECT series_id, device, model, precision, variant, threads
FROM series_overview
ORDER BY model, device, precision, variant, threads;
