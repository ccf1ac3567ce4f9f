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
        FROM session AS other
        JOIN device USING (device_id)
        JOIN model USING (model_id)
        WHERE other.status = 'succeeded'
            AND other.sweep_id = _session.sweep_id
            AND device.name = _session.device
            AND model.name = _session.model
            AND model.precision = _session.precision
            AND other.variant = _session.variant
            AND other.mode = _session.mode
            AND other.threads = _session.threads
            AND other.repetition = _session.repetition
    )
    OR (
        reason_code = 'export_failed'
        AND EXISTS (
            FROM session AS other
            JOIN device USING (device_id)
            JOIN model USING (model_id)
            WHERE other.status = 'succeeded'
                AND other.sweep_id = _session.sweep_id
                AND device.name = _session.device
                AND _is_model(model.name, _session.model)
                AND model.precision = _session.precision
                AND other.mode = _session.mode
        )
    ) AS superseded,
    repetition,
    exit_code,
    signal,
    started_at,
    COLUMNS(_cell_content())
FROM _session
WHERE status <> 'succeeded' AND reason_code IS DISTINCT FROM 'first_session';
