-- Which sessions failed last, and why? Those whose repetition succeeded are left out.
SELECT
    started_at,
    sweep_id,
    device,
    model,
    precision,
    variant,
    mode,
    threads,
    status,
    reason_code,
    signal,
    reason,
    session_id
FROM failed_session
WHERE NOT superseded
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($sweep IS NULL OR sweep_id = $sweep)
    AND ($since IS NULL OR night >= $since::DATE)
ORDER BY started_at DESC NULLS LAST, session_id
LIMIT 100;
