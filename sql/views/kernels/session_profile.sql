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
    (samples + dropped) / nullif(cpu_ns, 0) * 1e9 AS reached_rate_hz,
    samples,
    dropped,
    unresolved,
    unresolved / nullif(samples, 0) AS unresolved_share,
    runner_source,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM kernel_profile
JOIN _session USING (session_key)
WHERE status = 'succeeded';

COMMENT ON VIEW session_profile IS 'How complete the samples of a profile session are: how far the weights of its kernels can be trusted.';
COMMENT ON COLUMN session_profile.threads_sampled IS 'Threads that were sampled.';
COMMENT ON COLUMN session_profile.rate_hz IS 'Requested samples per second of processor time.';
COMMENT ON COLUMN session_profile.reached_rate_hz IS 'Samples per second of processor time that the operating system gave: its tick, such as 250 Hz, may be slower than the requested rate.';
COMMENT ON COLUMN session_profile.samples IS 'Samples taken.';
COMMENT ON COLUMN session_profile.dropped IS 'Samples lost because the buffer was full.';
COMMENT ON COLUMN session_profile.unresolved IS 'Samples whose function has no name in its library.';
COMMENT ON COLUMN session_profile.unresolved_share IS 'unresolved / samples, 0 to 1.';
