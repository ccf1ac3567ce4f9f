-- Reads: session_gate, _session
-- Every limit that was set for the start of a session, and how long the session waited for it. A session without rows
-- had no limits or lost its device before the first reading.
CREATE OR REPLACE VIEW session_readiness AS
SELECT
    COLUMNS(_cell_name()),
    session_id,
    status,
    reason_code,
    limit_name,
    bound,
    -- The condition at the last reading before the start, in the unit of the limit; NULL if it could not be read: the
    -- limit was not applied.
    value,
    -- The value that was farthest outside the limit; NULL if none was.
    worst,
    -- Whether the wait was in vain, so that the session is invalid; NULL if the condition could not be read.
    CASE WHEN starts_with(limit_name, 'min_') THEN value < bound ELSE value > bound END AS is_outside,
    -- Seconds that the session waited for this limit; a wait for several limits counts for the first of them.
    waited_s,
    note,
    started_at,
    COLUMNS(_cell_content())
FROM session_gate
JOIN _session USING (session_key);
