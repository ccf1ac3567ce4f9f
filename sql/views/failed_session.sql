CREATE OR REPLACE VIEW failed_session AS
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
    reason,
    log_tail,
    attempt,
    EXISTS (
        FROM _session AS other
        WHERE other.status = 'succeeded'
            AND other.sweep_id = _session.sweep_id
            AND other.device = _session.device
            AND other.model = _session.model
            AND other.precision = _session.precision
            AND other.variant = _session.variant
            AND other.mode = _session.mode
            AND other.threads = _session.threads
            AND other.slot = _session.slot
    ) AS superseded,
    slot AS session_index,
    exit_code,
    signal,
    started_at
FROM _session
WHERE status <> 'succeeded' AND reason_code IS DISTINCT FROM 'first_session';

COMMENT ON VIEW failed_session IS 'Sessions that ended without a result, and why. The first session of a device, which is discarded by rule, is no failure and not listed.';
COMMENT ON COLUMN failed_session.session_id IS 'The session, as its bundle names it; the first 16 digits of the file''s SHA-256 for a loose ETDump.';
COMMENT ON COLUMN failed_session.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN failed_session.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN failed_session.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN failed_session.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN failed_session.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN failed_session.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN failed_session.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN failed_session.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN failed_session.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN failed_session.status IS 'failed (the session could not be run to its end) or invalid (it ran, but its numbers do not count).';
COMMENT ON COLUMN failed_session.reason_code IS 'The kind of reason, one word.';
COMMENT ON COLUMN failed_session.reason IS 'The reason, one sentence.';
COMMENT ON COLUMN failed_session.log_tail IS 'Last lines that the runner wrote to stderr.';
COMMENT ON COLUMN failed_session.attempt IS '1 for the first try, counting up.';
COMMENT ON COLUMN failed_session.superseded IS 'Whether another attempt at the same session succeeded.';
COMMENT ON COLUMN failed_session.session_index IS 'Place of the session among its like in the sweep, from 0.';
COMMENT ON COLUMN failed_session.exit_code IS 'Exit code of the runner; NULL if it did not run or was killed.';
COMMENT ON COLUMN failed_session.signal IS 'Signal that killed the runner, or NULL.';
COMMENT ON COLUMN failed_session.started_at IS 'Start of the session, UTC.';
