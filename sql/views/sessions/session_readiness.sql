CREATE OR REPLACE VIEW session_readiness AS
SELECT
    session_id,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    status,
    reason_code,
    limit_name,
    bound,
    value,
    worst,
    CASE WHEN starts_with(limit_name, 'min_') THEN value < bound ELSE value > bound END AS is_outside,
    waited_s,
    note,
    started_at,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM session_gate
JOIN _session USING (session_key);

COMMENT ON VIEW session_readiness IS 'Every limit that was set for the start of a session, and how long the session waited for it. A session without rows had no limits or lost its device before the first reading.';
COMMENT ON COLUMN session_readiness.bound IS 'The limit.';
COMMENT ON COLUMN session_readiness.value IS 'The condition at the last reading before the start, in the unit of the limit; NULL if it could not be read: the limit was not applied.';
COMMENT ON COLUMN session_readiness.is_outside IS 'Whether the wait was in vain, so that the session is invalid; NULL if the condition could not be read.';
COMMENT ON COLUMN session_readiness.waited_s IS 'Seconds that the session waited for this limit; a wait for several limits counts for the first of them.';
COMMENT ON COLUMN session_readiness.note IS 'Why value is NULL.';
