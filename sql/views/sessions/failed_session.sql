-- Reads: session, device, model, _session
-- Sessions that ended without a result, and why. The first session of a device, which is always discarded, is not
-- listed.
CREATE OR REPLACE VIEW failed_session AS
SELECT
    COLUMNS(_cell_name()),
    session_id,
    -- failed (the session did not run to its end) or invalid (it ran, but its numbers do not count).
    status,
    reason_code,
    reason,
    log_tail,
    attempt,
    -- Whether another attempt at the same session succeeded; of a model that could not be exported, whether any session
    -- of one of its cases did.
    EXISTS (
        SELECT 1
        FROM session AS other
        JOIN device ON device.device_id = other.device_id
        JOIN model ON model.model_id = other.model_id
        WHERE other.status = 'succeeded'
            AND other.sweep_id = _session.sweep_id
            AND other.variant = _session.variant
            AND other.mode = _session.mode
            AND other.threads = _session.threads
            AND other.repetition = _session.repetition
            AND device.name = _session.device
            AND model.name = _session.model
            AND model.precision = _session.precision
    )
    OR (
        reason_code IS NOT DISTINCT FROM 'export_failed'
        AND EXISTS (
            SELECT 1
            FROM session AS other
            JOIN device ON device.device_id = other.device_id
            JOIN model ON model.model_id = other.model_id
            WHERE other.status = 'succeeded'
                AND other.sweep_id = _session.sweep_id
                AND other.mode = _session.mode
                AND device.name = _session.device
                AND model.precision = _session.precision
                AND _without_case(model.name) = _without_case(_session.model)
        )
    ) AS superseded,
    repetition,
    exit_code,
    signal,
    started_at,
    COLUMNS(_cell_content())
FROM _session
WHERE status <> 'succeeded' AND reason_code IS DISTINCT FROM 'first_session';
