CREATE OR REPLACE VIEW thread_scaling AS
WITH
scaled AS (
    SELECT
        * RENAME (cell_ms AS time_ms),
        min(cell_ms) OVER threads_of_variant AS least_ms,
        max(cell_ms) FILTER (threads = 1) OVER threads_of_variant AS one_thread_ms
    FROM _cell
    WHERE mode = 'timing'
    WINDOW threads_of_variant AS (PARTITION BY sweep_id, thread_group, variant)
    QUALIFY count(DISTINCT threads) OVER (PARTITION BY sweep_id, thread_group) > 1
)
SELECT
    sweep_id,
    night,
    device,
    emulated,
    soc,
    model,
    precision,
    variant,
    mode,
    threads,
    sessions,
    time_ms,
    CASE WHEN _has_times(emulated) THEN one_thread_ms / nullif(time_ms, 0) END AS speedup,
    CASE WHEN _has_times(emulated) THEN one_thread_ms / nullif(time_ms * threads, 0) END AS efficiency,
    CASE
        WHEN _has_times(emulated)
            -- More threads than needed for the same time only take cores from others.
            THEN min(threads) FILTER (time_ms <= 1.03 * least_ms) OVER (PARTITION BY sweep_id, thread_group, variant)
    END AS recommended_threads,
    runner_source,
    thread_group,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM scaled;

COMMENT ON VIEW thread_scaling IS 'How the latency of a model changes with the number of threads, by variant: cells that are equal in everything else. Cores share the units of SME, so more threads may be slower.';
COMMENT ON COLUMN thread_scaling.speedup IS 'Time with one thread over its time; NULL without sessions of one thread, and on emulated devices.';
COMMENT ON COLUMN thread_scaling.efficiency IS 'speedup / threads: 1 if each thread adds as much as the first.';
COMMENT ON COLUMN thread_scaling.recommended_threads IS 'The fewest threads that are within 3 % of the fastest, for this variant; NULL on emulated devices.';
