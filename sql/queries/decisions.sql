-- Decisions and notes of users, the newest first.
FROM decision_overview
WHERE revoked_at IS NULL AND kind <> 'missing_file'
ORDER BY decided_at DESC, decision_id;
