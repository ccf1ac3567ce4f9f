-- Reads: _cell, cell_node, node, node_source, operator_category
-- Time of each operator in each module of a cell, and of what is no operator. Those of a cell add up to its time.
CREATE OR REPLACE VIEW _time_part AS
SELECT
    cell_id,
    cell,
    sweep_id,
    -- module, inserted, unknown or unattributed, as in module_time; where the export does not state modules, module.
    CASE
        WHEN NOT _is_operator(node.kind) THEN 'unattributed'
        WHEN certainty = 'inserted' THEN 'inserted'
        WHEN source_map_id IS NOT NULL AND module_path IS NULL THEN 'unknown'
        ELSE 'module'
    END AS place,
    -- Path of the module that calls it; empty for the model itself and outside of modules.
    CASE WHEN place = 'module' THEN coalesce(module_path, '') ELSE '' END AS module_path,
    node.kind AS kind,
    -- As in _named_node, but with names of nodes that are no operators.
    CASE
        WHEN _is_operator(node.kind) THEN _operator_name(node.operator, layout, data_type, microkernel)
        ELSE node.operator
    END AS operator,
    -- As in _named_node.
    CASE WHEN _is_operator(node.kind) THEN coalesce(category, 'Other') ELSE 'Unattributed' END AS category,
    -- Operator of the exported model; NULL if unknown.
    source_operator,
    -- The first file and line of its calls in a run; NULL if unknown.
    min_by(file_line, node.node_id) AS file_line,
    sum(calls) / any_value(typical_runs) AS calls_per_run,
    -- Milliseconds in one run, without children.
    sum(self_ns) / any_value(typical_runs) / 1e6 AS time_ms,
    sum(self_ns) / nullif(any_value(execute_ns), 0) AS share,
    -- As in operator_time; 0 for what is no operator.
    sum(CASE WHEN node.kind = 'delegated' THEN calls ELSE 0 END) / any_value(typical_runs) * _delegate_clock_ms()
        AS resolution_ms,
    source_map_id IS NOT NULL AS has_modules,
    -- The first of its nodes in the program.
    min(row(node.chain_index, node.instruction_id, node.node_id)) AS position
FROM _cell
JOIN cell_node USING (cell_id)
JOIN node USING (node_id)
LEFT JOIN node_source USING (source_map_id, node_id)
LEFT JOIN operator_category ON operator_category.operator = node.operator AND operator_category.kind = node.kind
GROUP BY ALL;
