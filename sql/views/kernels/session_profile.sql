-- Reads: kernel_profile, _session
-- How complete the samples of a profile session are: how far the weights of its kernels can be trusted.
CREATE OR REPLACE VIEW session_profile AS
SELECT
    COLUMNS(_cell_name()),
    session_id,
    -- Threads that were sampled.
    threads_sampled,
    rate_hz,
    -- Samples per second of processor time that the operating system gave: its tick, such as 250 Hz, may be slower than
    -- the requested rate.
    (samples + dropped) / nullif(cpu_ns, 0) * 1e9 AS reached_rate_hz,
    samples,
    dropped,
    unresolved,
    -- unresolved / samples, 0 to 1.
    unresolved / nullif(samples, 0) AS unresolved_share,
    runner_source,
    COLUMNS(_cell_content())
FROM (SELECT * RENAME (threads AS threads_sampled) FROM kernel_profile)
JOIN _session USING (session_key)
WHERE status = 'succeeded';
