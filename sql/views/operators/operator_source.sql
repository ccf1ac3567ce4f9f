CREATE OR REPLACE VIEW operator_source AS
WITH
timed AS (
    SELECT cell_id, source_map_id, node_id, calls_per_run, time_ms, sum(time_ms) OVER (PARTITION BY cell_id) AS execute_ms
    FROM _node_cell
),
mapped AS (SELECT cell_id, max(source_map_id) AS source_map_id FROM timed GROUP BY cell_id)
SELECT
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    _cell.cell,
    node_source.chain_index,
    node_source.instruction_id,
    node.name AS operator,
    coalesce(node.kind, 'delegated') AS kind,
    delegate_node,
    source_operator,
    fused_with,
    node_source.module_path,
    module_class,
    file_line,
    certainty,
    note,
    calls_per_run,
    time_ms,
    time_ms / nullif(execute_ms, 0) AS share,
    sessions,
    runs,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM mapped
JOIN _cell USING (cell_id)
JOIN node_source USING (source_map_id)
LEFT JOIN module_class USING (source_map_id, module_path)
LEFT JOIN timed USING (cell_id, node_id)
LEFT JOIN node USING (node_id);

COMMENT ON VIEW operator_source IS 'Where each operator of a cell comes from in the model: one row per operator as executed, and per node of a delegate that did not run. Only cells whose export states it (sources.json).';
COMMENT ON COLUMN operator_source.chain_index IS 'Chain of instructions of the program.';
COMMENT ON COLUMN operator_source.instruction_id IS 'Instruction of the program; the operators of a delegate share one.';
COMMENT ON COLUMN operator_source.operator IS 'Name of the operator in the ETDump, with its number; NULL for a node that did not run.';
COMMENT ON COLUMN operator_source.delegate_node IS 'Kind of the node in the delegate''s graph, such as XNNConv2d; NULL outside XNNPACK and if unknown.';
COMMENT ON COLUMN operator_source.source_operator IS 'Operator of the exported model, such as aten.convolution.default: a 1x1 convolution that XNNPACK runs as Fully Connected is a convolution here. NULL if unknown.';
COMMENT ON COLUMN operator_source.fused_with IS 'Other operators of the model that XNNPACK''s graph contains in the same node, such as an activation, with their modules; `possibly` precedes one that may have run separately.';
COMMENT ON COLUMN operator_source.module_path IS 'Path of the module that calls it, such as encoder.layers.3.attention; empty for the model itself. If several operators match, the innermost module around all of them. NULL if unknown.';
COMMENT ON COLUMN operator_source.file_line IS 'File and line of the call: the innermost outside torch, otherwise inside it. NULL if unknown.';
COMMENT ON COLUMN operator_source.certainty IS 'known, ambiguous (several operators match), inserted (not an operator of the model), unknown, or not executed.';
COMMENT ON COLUMN operator_source.note IS 'Why it is not known; NULL if it is.';
COMMENT ON COLUMN operator_source.time_ms IS 'Milliseconds in one run: a part of the time of its cell; NULL if it did not run.';
COMMENT ON COLUMN operator_source.share IS 'Share of Method::execute, from 0 to 1; NULL if it did not run.';
