-- Reads: _cell, cell_node, node_source, module_class, node
-- Where each operator of a cell comes from in the model: one row per operator as executed, and per node of a delegate
-- that did not run. Only cells whose export states it (sources.json).
CREATE OR REPLACE VIEW operator_source AS
SELECT
    COLUMNS(_cell_name()),
    node_source.chain_index,
    -- Instruction of the program; the operators of a delegate share one.
    node_source.instruction_id,
    -- Name of the operator in the ETDump, with its number; NULL for a node that did not run.
    node.name AS operator,
    -- delegated, portable or other; method, delegate_call and operator_call for the unattributed time inside
    -- Method::execute itself and inside the calls of delegates and operators.
    coalesce(node.kind, 'delegated') AS kind,
    -- Kind of the node in the delegate's graph, such as XNNConv2d; NULL outside XNNPACK and if unknown.
    delegate_node,
    -- Operator of the exported model, such as aten.convolution.default: a 1x1 convolution that XNNPACK runs as Fully
    -- Connected is a convolution here. NULL if unknown.
    source_operator,
    -- Other operators of the model that XNNPACK's graph contains in the same node, such as an activation, with their
    -- modules; `possibly` precedes one that may have run separately.
    fused_with,
    -- Path of the module that calls it, such as encoder.layers.3.attention; empty for the model itself. If several
    -- operators match, the innermost module around all of them. NULL if unknown.
    node_source.module_path,
    module_class,
    -- File and line of the call: the innermost outside torch, otherwise inside it. NULL if unknown.
    file_line,
    -- known, ambiguous (several operators match), inserted (not an operator of the model), unknown, or not executed.
    certainty,
    -- Why it is not known; NULL if it is.
    note,
    -- Calls in one run: the mean of the same runs as time_ms.
    calls / typical_runs AS calls_per_run,
    -- Milliseconds in one run: a part of the time of its cell; NULL if it did not run.
    self_ns / typical_runs / 1e6 AS time_ms,
    -- Share of Method::execute, from 0 to 1; NULL if it did not run.
    self_ns / nullif(execute_ns, 0) AS share,
    sessions,
    runs,
    COLUMNS(_cell_content())
FROM node_source
LEFT JOIN module_class USING (source_map_id, module_path)
LEFT JOIN node USING (node_id)
JOIN _cell USING (source_map_id)
LEFT JOIN cell_node USING (cell_id, node_id);
