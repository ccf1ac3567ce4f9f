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
    session_key IN (
        SELECT failed.session_key
        FROM _session AS failed
        JOIN session AS other USING (sweep_id, variant, mode, threads, repetition)
        JOIN device ON device.device_id = other.device_id AND device.name = failed.device
        JOIN model
            ON model.model_id = other.model_id AND model.name = failed.model AND model.precision = failed.precision
        WHERE failed.status <> 'succeeded' AND other.status = 'succeeded'
    )
    OR (
        reason_code = 'export_failed'
        AND session_key IN (
            SELECT failed.session_key
            FROM _session AS failed
            JOIN session AS other USING (sweep_id, mode)
            JOIN device ON device.device_id = other.device_id AND device.name = failed.device
            JOIN model ON model.model_id = other.model_id AND model.precision = failed.precision
            WHERE failed.reason_code = 'export_failed'
                AND other.status = 'succeeded'
                AND _without_case(model.name) = _without_case(failed.model)
        )
    ) AS superseded,
    repetition,
    exit_code,
    signal,
    started_at,
    COLUMNS(_cell_content())
FROM _session
WHERE status <> 'succeeded' AND reason_code IS DISTINCT FROM 'first_session';
