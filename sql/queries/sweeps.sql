-- Every sweep, the newest first; loose ETDumps, whose night is unknown, come last, and those measured later after the
-- others of their night. Comparisons outside a sweep are not listed.
FROM sweep_overview
WHERE sweep_id IN (SELECT DISTINCT sweep_id FROM session WHERE purpose IS NULL)
ORDER BY night DESC NULLS LAST, measured_later IS NOT NULL, ended_at DESC NULLS LAST, sweep_id DESC;
