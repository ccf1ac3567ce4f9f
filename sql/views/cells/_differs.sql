-- Reads: session_cell, session, cell
-- What distinguishes each cell with a result from others of the same name in its sweep; a cell without others has no
-- row.
CREATE OR REPLACE VIEW _differs AS
WITH
with_result AS (
    SELECT DISTINCT cell_id, sweep_id
    FROM session_cell
    JOIN session USING (session_key)
    WHERE status = 'succeeded' AND purpose IS NULL
),
named AS (
    SELECT cell.*, [device, model, precision, variant, mode, threads::VARCHAR] AS name
    FROM cell
    JOIN with_result USING (cell_id, sweep_id)
),
ambiguous AS (
    SELECT sweep_id, name
    FROM named
    GROUP BY sweep_id, name
    HAVING count(*) > 1
),
stated AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        name,
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
    FROM named
    JOIN ambiguous USING (sweep_id, name)
),
shared AS (
    SELECT
        sweep_id,
        name,
        list_reduce(list(facts), LAMBDA one, other: list_intersect(one, other)) AS facts -- noqa
    FROM stated
    GROUP BY sweep_id, name
)
SELECT
    cell_id,
    cell,
    sweep_id,
    -- What distinguishes it from others of the same name in the sweep, as a list of {fact, value}, NULL for an unknown
    -- value; NULL if there are none.
    nullif(list_filter(stated.facts, LAMBDA each: NOT list_contains(shared.facts, each)), []) AS differs
FROM stated
JOIN shared USING (sweep_id, name);
