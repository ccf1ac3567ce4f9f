-- The sweeps of a warehouse, newest first; loose ETDumps, whose night is not known, come last.
SELECT sweep_id, name, night, succeeded, failed, invalid, discarded, devices, models, started_at, ended_at
FROM sweep_overview
ORDER BY night DESC NULLS LAST, ended_at DESC NULLS LAST, sweep_id DESC;
