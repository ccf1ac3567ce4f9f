-- How much a profile saw, one row per session that sampled its kernels: what their weights in `kernel` are worth.
CREATE TABLE kernel_profile (
    session_key INTEGER NOT NULL,
    rate_hz DOUBLE,
    samples BIGINT NOT NULL,
    dropped BIGINT NOT NULL,      -- that found no room any more
    unresolved BIGINT NOT NULL,   -- whose function has no name
    threads INTEGER
);
