CREATE OR REPLACE VIEW session_accuracy AS
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
    output,
    max_abs_error,
    max_rel_error,
    nonfinite_mismatches,
    runner_source
FROM accuracy
JOIN _session USING (session_key)
WHERE status = 'succeeded';

COMMENT ON VIEW session_accuracy IS 'Every output of every session that succeeded, beside the eager reference.';
COMMENT ON COLUMN session_accuracy.session_id IS 'The session, as its bundle names it; the first 16 digits of the file''s SHA-256 for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN session_accuracy.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN session_accuracy.output IS 'Number of the output, from 0.';
COMMENT ON COLUMN session_accuracy.max_abs_error IS 'Largest absolute difference from the reference; NULL where no pair of finite values exists.';
COMMENT ON COLUMN session_accuracy.max_rel_error IS 'Largest difference relative to the reference; NULL likewise.';
COMMENT ON COLUMN session_accuracy.nonfinite_mismatches IS 'Places where one of the two is NaN or infinite and the other is not the same.';
COMMENT ON COLUMN session_accuracy.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
