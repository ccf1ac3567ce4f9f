-- Reads: session, sweep, model
-- The largest planned buffers of each model of a sweep that are alive at the instruction where these are largest
-- together: what to make smaller or shorter to need less planned memory.
CREATE OR REPLACE VIEW live_buffer AS
WITH
used AS (SELECT DISTINCT sweep_id, model_id FROM session),
planned AS (
    SELECT
        model.*,
        unnest(
            from_json(
                memory_plan -> 'buffers',
                '[{"bytes": "BIGINT", "producer": "VARCHAR", "last_user": "VARCHAR", "first": "INTEGER",'
                || ' "last": "INTEGER"}]'
            )
        ) AS buffer
    FROM model
    WHERE memory_plan IS NOT NULL AND NOT _is_roof(name)
)
SELECT
    sweep_id,
    sweep.night,
    -- Name of the model, as model@case if it is measured in several ways (methods, shapes); the name of the file for a
    -- loose ETDump.
    planned.name AS model,
    precision,
    -- Bytes of the buffer; values that share its memory, such as views, are one buffer.
    buffer.bytes,
    -- What writes it: an operator such as aten::add.out, a backend, input, or state (it is read before it is written).
    buffer.producer,
    -- What uses it last: an operator, a backend, output or state.
    buffer.last_user,
    -- Number of the instruction that writes it, from 0.
    buffer.first AS first_instruction,
    -- Number of the last instruction that uses it.
    buffer.last AS last_instruction,
    -- Instructions of the method.
    (memory_plan ->> 'instructions')::INTEGER AS instructions,
    -- Part of the instructions during which its memory cannot be used for anything else, 0 to 1.
    (last_instruction - first_instruction + 1) / nullif(instructions, 0) AS life_share,
    live_bytes,
    planned_bytes,
    pte_sha256
FROM planned
JOIN used USING (model_id)
JOIN sweep USING (sweep_id);
