-- Planned buffers that live over more than half of a graph of 4 instructions or more and hold a quarter or more of what
-- is alive; inputs, outputs and state must live that long.
SELECT
    *
FROM live_buffer
WHERE sweep_id = $sweep_id
    AND instructions >= 4
    AND life_share > 0.5
    AND live_bytes > 0
    AND bytes >= 0.25 * live_bytes
    AND producer NOT IN ('input', 'state')
    AND last_user <> 'output'
ORDER BY bytes DESC, model, precision, first_instruction;
