-- Reads: _cell, cell_node, node, node_source, module_class
-- Where the time of Method::execute goes in the model's own modules: a tree per cell. The own_share of its rows add up
-- to 1; share contains the modules inside.
CREATE OR REPLACE VIEW module_time AS
WITH
own AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        source_map_id,
        _module_name(node.kind, certainty, module_path) AS module_path,
        CASE
            WHEN NOT _is_operator(node.kind) THEN 'unattributed'
            WHEN certainty = 'inserted' THEN 'inserted'
            WHEN module_path IS NULL THEN 'unknown'
            ELSE 'module'
        END AS kind,
        sum(self_ns) / any_value(typical_runs) / 1e6 AS time_ms,
        sum(CASE WHEN node.kind = 'delegated' THEN calls ELSE 0 END) / any_value(typical_runs) * _delegate_clock_ms()
            AS resolution_ms
    FROM _cell
    JOIN cell_node USING (cell_id)
    JOIN node USING (node_id)
    LEFT JOIN node_source USING (source_map_id, node_id)
    WHERE source_map_id IS NOT NULL
    GROUP BY ALL
),
-- Each module and all modules around it, up to the model itself, whose path is empty.
around AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        source_map_id,
        unnest(
            CASE
                WHEN kind = 'module' AND module_path != ''
                    THEN list_transform(
                            generate_series(0, len(string_split(module_path, '.'))),
                            LAMBDA depth: array_to_string(string_split(module_path, '.')[1:depth], '.')
                        )
                WHEN kind = 'module' THEN ['']
                ELSE ['', module_path]
            END
        ) AS path,
        path = module_path AS is_own,
        kind AS own_kind,
        time_ms,
        resolution_ms
    FROM own
),
summed AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        source_map_id,
        path,
        CASE WHEN path = '' THEN 'module' ELSE any_value(own_kind) END AS kind,
        coalesce(sum(time_ms) FILTER (is_own), 0) AS own_ms,
        sum(time_ms) AS time_ms,
        sum(resolution_ms) AS resolution_ms
    FROM around
    GROUP BY
        cell_id,
        cell,
        sweep_id,
        source_map_id,
        path,
        CASE WHEN path = '' OR own_kind = 'module' THEN '' ELSE own_kind END
)
SELECT
    COLUMNS(_cell_name()),
    -- Path of the module, such as encoder.layers.3; empty for the model itself. Unattributed, Inserted (layout and type
    -- changes of the exporter) and Unknown are not modules: see kind.
    path AS module_path,
    module_class,
    -- module; unattributed, inserted or unknown for time that belongs to no module.
    summed.kind AS kind,
    -- Modules around it; 0 for the model itself.
    CASE WHEN path = '' THEN 0 WHEN summed.kind = 'module' THEN len(string_split(path, '.')) ELSE 1 END AS depth,
    -- Path of the module around it; NULL for the model itself.
    CASE
        WHEN path = '' THEN NULL
        WHEN summed.kind != 'module' THEN ''
        ELSE array_to_string(string_split(path, '.')[:-2], '.')
    END AS parent,
    -- Milliseconds in one run in the module and all modules inside; of the model itself, all of Method::execute.
    time_ms,
    -- time_ms as a share of Method::execute, from 0 to 1.
    time_ms / nullif(cell_ms, 0) AS share,
    -- Milliseconds in one run in operators that the module calls itself: a part of the time of its cell.
    own_ms,
    -- own_ms as a share of Method::execute, from 0 to 1.
    own_ms / nullif(cell_ms, 0) AS own_share,
    -- Milliseconds that the time may be off: 1 microsecond per call of a delegated operator, whose times are full
    -- microseconds, rounded down. An operator takes up to that much longer, and Unattributed that much less.
    resolution_ms,
    sessions,
    runs,
    runner_source,
    COLUMNS(_cell_content())
FROM summed
LEFT JOIN module_class ON module_class.source_map_id = summed.source_map_id AND module_class.module_path = path
JOIN _cell USING (cell_id, cell, sweep_id);
