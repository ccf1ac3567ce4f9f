-- Reads: _cell
-- How the latency of a model changes with the number of threads, by variant: cells that are equal in everything else.
-- Cores share the units of SME, so more threads may be slower.
CREATE OR REPLACE VIEW thread_scaling AS
WITH
scaled AS (
    SELECT
        * RENAME (cell_ms AS time_ms),
        min(cell_ms) OVER threads_of_variant AS min_ms,
        max(cell_ms) FILTER (threads = 1) OVER threads_of_variant AS one_thread_ms
    FROM _cell
    WHERE mode = 'timing'
    WINDOW threads_of_variant AS (PARTITION BY sweep_id, thread_group, variant)
    QUALIFY count(DISTINCT threads) OVER (PARTITION BY sweep_id, thread_group) > 1
)
SELECT
    COLUMNS(_cell_name()),
    -- Milliseconds in one run: a part of the time of the cell, a mean of the same runs of the same sessions (see
    -- session_latency).
    time_ms,
    -- Time with one thread over its time; NULL without sessions of one thread, and on emulated devices.
    CASE WHEN _has_times(emulated) THEN one_thread_ms / nullif(time_ms, 0) END AS speedup,
    -- speedup / threads: 1 if each thread adds as much as the first.
    CASE WHEN _has_times(emulated) THEN one_thread_ms / nullif(time_ms * threads, 0) END AS efficiency,
    -- The fewest threads that are within 3 % of the fastest, for this variant; NULL on emulated devices.
    CASE
        WHEN _has_times(emulated)
            -- More threads than needed for the same time only take cores from others.
            THEN min(threads) FILTER (time_ms <= 1.03 * min_ms) OVER (PARTITION BY sweep_id, thread_group, variant)
    END AS recommended_threads,
    sessions,
    soc,
    thread_group,
    runner_source,
    COLUMNS(_cell_content())
FROM scaled;
