-- Failed and invalid sessions; those that no later attempt replaced come first.
FROM failed_session
WHERE sweep_id = $sweep_id
ORDER BY superseded, status, reason_code, device, started_at, session_id;
