-- Decisions and notes of users, the newest first.
SELECT decision_id, kind, night, model, precision, variant, device, reason, decided_at, decided_by
FROM decision_overview
WHERE revoked_at IS NULL
ORDER BY decided_at DESC, decision_id;
