-- Reads: _cell
-- How the latency of a model changes with the number of threads, by variant: cells that are equal in everything else.
-- Cores share the units of SME, so more threads may be slower.
CREATE OR REPLACE VIEW thread_scaling AS
WITH
scaled AS (
    SELECT
        _cell.* RENAME (cell_ms AS time_ms),
        list_filter(times, LAMBDA each: each.variant = _cell.variant) AS of_variant,
        list_max(list_transform(list_filter(of_variant, LAMBDA each: each.threads = 1), LAMBDA each: each.time_ms))
            AS one_thread_ms,
        1.03 * list_min(list_transform(of_variant, LAMBDA each: each.time_ms)) AS enough_ms
    FROM _cell
    -- No window, so that a filter on a cell reads its group only.
    JOIN
        LATERAL (
            SELECT list({ variant: alike.variant, threads: alike.threads, time_ms: alike.cell_ms }) AS times
            FROM _cell AS alike
            WHERE alike.mode = 'timing'
                AND alike.sweep_id = _cell.sweep_id
                AND alike.thread_group = _cell.thread_group
            HAVING count(DISTINCT alike.threads) > 1
        )
        ON TRUE
    WHERE mode = 'timing'
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
            THEN list_min(
                    list_transform(
                        list_filter(of_variant, LAMBDA each: each.time_ms <= enough_ms), LAMBDA each: each.threads
                    )
                )
    END AS recommended_threads,
    sessions,
    soc,
    thread_group,
    runner_source,
    COLUMNS(_cell_content())
FROM scaled;
