-- The sweeps of a warehouse, newest first; loose ETDumps, of which nobody knows the night, come last.
SELECT *
FROM sweep_overview
ORDER BY night DESC NULLS LAST, ended_at DESC NULLS LAST, sweep_id DESC;
