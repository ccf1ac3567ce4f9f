-- Failed and invalid sessions of sweeps; those that no later attempt replaced come first.
FROM failed_session
WHERE list_contains($sweeps::VARCHAR[], sweep_id)
ORDER BY superseded, status, reason_code, device, started_at, session_id;
