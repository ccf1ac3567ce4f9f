-- The only sweep of an excerpt, also if all its sessions were measured for comparisons.
FROM sweep_overview;
