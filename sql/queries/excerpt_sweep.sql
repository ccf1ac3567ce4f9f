-- The only sweep of an excerpt, also if all its sessions were measured for comparisons.
SELECT sweep_id, name, night, succeeded, failed, invalid, discarded, devices, models, started_at, ended_at
FROM sweep_overview;
