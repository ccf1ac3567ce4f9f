CREATE OR REPLACE VIEW session_profile AS
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
    _session.threads,
    kernel_profile.threads AS threads_sampled,
    rate_hz,
    samples,
    dropped,
    unresolved,
    unresolved / nullif(samples, 0) AS unresolved_share,
    runner_source
FROM kernel_profile
JOIN _session USING (session_key)
WHERE status = 'succeeded';

COMMENT ON VIEW session_profile IS 'How much the samples of a profile session saw: what the weights of its kernels are worth.';
COMMENT ON COLUMN session_profile.session_id IS 'The session, as its bundle names it; the first 16 digits of the file''s SHA-256 for a loose ETDump.';
COMMENT ON COLUMN session_profile.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN session_profile.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN session_profile.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_profile.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN session_profile.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN session_profile.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_profile.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN session_profile.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN session_profile.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN session_profile.threads_sampled IS 'Threads that a sample was taken of.';
COMMENT ON COLUMN session_profile.rate_hz IS 'Samples asked for per second of processor time.';
COMMENT ON COLUMN session_profile.samples IS 'Samples taken.';
COMMENT ON COLUMN session_profile.dropped IS 'Samples that found no room any more.';
COMMENT ON COLUMN session_profile.unresolved IS 'Samples whose function has no name in its library.';
COMMENT ON COLUMN session_profile.unresolved_share IS 'unresolved / samples, 0 to 1.';
COMMENT ON COLUMN session_profile.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
