-- Reads: cell_output, cell
-- What distinguishes each cell with a result from others of the same name in its sweep; a cell without others has no
-- row.
CREATE OR REPLACE VIEW _differs AS
WITH
-- Few names are ambiguous: the facts of their cells alone are read.
namesake AS (
    SELECT one.cell_id, one.cell, one.sweep_id, unnest([one.cell_id, other.cell_id]) AS member_id
    FROM cell AS one
    JOIN cell AS other USING (sweep_id, device, model, precision, variant, mode)
    WHERE one.threads IS NOT DISTINCT FROM other.threads
        AND one.cell_id <> other.cell_id
        AND one.purpose IS NULL
        AND other.purpose IS NULL
        AND one.cell_id IN (SELECT cell_id FROM cell_output)
        AND other.cell_id IN (SELECT cell_id FROM cell_output)
),
stated AS (
    SELECT
        cell_id,
        [
            { fact: 'seed', value: seed::VARCHAR },
            { fact: 'pte', value: left(pte_sha256, 8) },
            { fact: 'method', value: method },
            { fact: 'inputs', value: left(inputs_sha256, 8) },
            { fact: 'runner', value: left(runner_sha256, 8) },
            { fact: 'serial', value: serial },
            { fact: 'build', value: build },
            { fact: 'OS', value: os_version },
            { fact: 'device model', value: device_model },
            { fact: 'SoC', value: soc },
            { fact: 'SME2 of the device', value: sme2::VARCHAR },
            { fact: 'emulated', value: emulated::VARCHAR },
            { fact: 'platform', value: platform },
            { fact: 'launcher', value: launcher },
            { fact: 'executions', value: executions::VARCHAR },
            { fact: 'warm-up', value: warmup_executions::VARCHAR }
        ] AS facts
    FROM cell
)
SELECT
    namesake.cell_id,
    cell,
    sweep_id,
    -- What distinguishes it from others of the same name in the sweep, as a list of {fact, value}, NULL for an unknown
    -- value; NULL if there are none.
    nullif(
        list_filter(
            any_value(facts) FILTER (member_id = namesake.cell_id),
            LAMBDA each: list_bool_or(list_transform(list(facts), LAMBDA other: NOT list_contains(other, each)))
        ),
        []
    ) AS differs
FROM namesake
JOIN LATERAL (SELECT facts FROM stated WHERE stated.cell_id = namesake.member_id) ON TRUE
GROUP BY namesake.cell_id, cell, sweep_id;
