-- Reads: cell, session_cell, session, session_summary, model, _session_node, cell_made_from
-- The roof of each device: what the cells of the model `roof` measured. Emulated devices have none.
CREATE OR REPLACE VIEW _roof AS
WITH
member AS (
    SELECT
        cell_id,
        session_key,
        macs,
        min_ms,
        nullif(memory_read_bytes_per_s, 0) / 1e9 AS memory_gb_per_s,
        list_filter(read_speeds, LAMBDA each: each.bytes_per_s > 0) AS read_speeds
    FROM cell
    JOIN session_cell USING (cell_id)
    JOIN session USING (session_key)
    JOIN session_summary USING (session_key)
    JOIN (SELECT model_id, macs FROM model) USING (model_id)
    WHERE _is_roof(model)
        AND cell.purpose IS NULL
        AND cell.mode = 'timing'
        AND _has_times(emulated)
        AND status = 'succeeded'
        AND macs > 0
        AND min_ms > 0
),
-- Of the time of a session, the part in the product itself: around it, quantized values are converted.
product AS (
    SELECT session_key, sum(time_ns) FILTER (category IN ('Convolution', 'GEMM')) / nullif(sum(time_ns), 0) AS share
    FROM _session_node
    WHERE session_key IN (SELECT session_key FROM member)
    GROUP BY session_key
),
computed AS (
    -- Multiply-accumulates in the fastest run, in 1e9 per second.
    SELECT cell_id, macs / (min_ms * coalesce(nullif(share, 0), 1)) / 1e6 AS gmac_per_s, memory_gb_per_s
    FROM member
    LEFT JOIN product USING (session_key)
),
peak AS (
    SELECT
        cell_id,
        count(*) AS sessions,
        median(gmac_per_s) AS peak_gmac_per_s,
        _median_bounds(list(gmac_per_s)) AS bounds,
        -- What an older runner reads alone. Without it, the speed is unknown.
        CASE
            WHEN count(memory_gb_per_s) > 0 THEN [{ 'bytes': 268435456, 'gb_per_s': median(memory_gb_per_s) }]
        END AS of_memory
    FROM computed
    GROUP BY cell_id
),
cached AS (
    SELECT cell_id, list({ 'bytes': size_bytes, 'gb_per_s': gb_per_s } ORDER BY size_bytes) AS of_caches
    FROM (
        SELECT cell_id, speed.bytes AS size_bytes, median(speed.bytes_per_s) / 1e9 AS gb_per_s
        FROM (SELECT cell_id, unnest(read_speeds) AS speed FROM member)
        GROUP BY cell_id, size_bytes
    )
    GROUP BY cell_id
)
SELECT
    cell_id,
    peak.sessions,
    peak_gmac_per_s,
    bounds.low AS low_gmac_per_s,
    bounds.high AS high_gmac_per_s,
    coalesce(of_caches, of_memory) AS read_speeds,
    clock_mhz
FROM peak
LEFT JOIN cached USING (cell_id)
LEFT JOIN cell_made_from USING (cell_id);
