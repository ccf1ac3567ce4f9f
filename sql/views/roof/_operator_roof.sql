-- Reads: _cell, cell_node, node, operator_category, node_source, _cell_roof
-- Each operator instance of each cell: its time, its work, and the time that its work takes at the roof of the device.
CREATE OR REPLACE VIEW _operator_roof AS
WITH
worked AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        node_id,
        source_map_id,
        calls / typical_runs AS calls_per_run,
        self_ns / typical_runs / 1e6 AS time_ms,
        self_ns / nullif(execute_ns, 0) AS time_share,
        -- Times a DOUBLE: a BIGINT times `calls` may overflow.
        node_source.macs * calls_per_run AS macs,
        node_source.bytes * calls_per_run AS bytes,
        _read_speed(read_speeds, node_source.bytes) AS read_gb_per_s,
        -- Recipes with integers leave convolutions, products of activations and portable operators in fp32.
        CASE
            WHEN regexp_matches(precision, '^(fp16|int[48]_)') AND node.data_type IN ('F32', 'PF32')
                OR regexp_matches(precision, '^int[48]_') AND node.kind = 'portable'
                THEN fp32_gmac_per_s
            ELSE recipe_gmac_per_s
        END AS peak_gmac_per_s,
        recipe_gmac_per_s,
        read_speeds,
        clock_ratio,
        CASE
            WHEN node_source.macs > 0 THEN node_source.macs * calls_per_run / peak_gmac_per_s / 1e6
            ELSE node_source.macs
        END AS compute_ms,
        node_source.bytes * calls_per_run / read_gb_per_s / 1e6 AS memory_ms,
        -- NULL if either is: `greatest` would leave it out.
        CASE WHEN compute_ms + memory_ms IS NOT NULL THEN greatest(compute_ms, memory_ms) END AS roof_ms
    FROM _cell
    JOIN cell_node USING (cell_id)
    JOIN node USING (node_id)
    LEFT JOIN node_source USING (source_map_id, node_id)
    LEFT JOIN _cell_roof USING (cell_id)
)
SELECT
    worked.* EXCLUDE (compute_ms, memory_ms),
    node.name AS operator,
    node.operator AS operator_type,
    node.kind,
    coalesce(category, 'Other') AS category,
    data_type,
    microkernel,
    chain_index,
    instruction_id,
    CASE WHEN node.kind = 'delegated' THEN calls_per_run * _delegate_clock_ms() ELSE 0 END AS resolution_ms,
    -- time_ms is less than 10 microseconds per call: calling it costs as much as computing it.
    CASE
        WHEN roof_ms IS NULL THEN 'unknown'
        WHEN time_ms < 0.01 * calls_per_run THEN 'overhead'
        WHEN compute_ms >= memory_ms THEN 'compute'
        ELSE 'memory'
    END AS bound,
    roof_ms / nullif(time_ms, 0) AS share,
    CASE WHEN time_ms > roof_ms THEN time_ms - roof_ms WHEN roof_ms IS NOT NULL THEN 0 END AS winnable_ms
FROM worked
JOIN node USING (node_id)
LEFT JOIN operator_category ON operator_category.operator = node.operator AND operator_category.kind = node.kind
WHERE _is_operator(node.kind);
