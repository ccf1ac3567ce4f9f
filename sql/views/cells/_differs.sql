-- Reads: cell_output, cell
-- What distinguishes each cell with a result from others of the same name in its sweep; a cell without others has no
-- row.
CREATE OR REPLACE VIEW _differs AS
WITH
named AS NOT MATERIALIZED (
    SELECT cell.* EXCLUDE (threads), coalesce(threads, -1) AS name_threads
    FROM cell
    JOIN cell_output USING (cell_id)
    WHERE purpose IS NULL
),
-- Few names are ambiguous: the facts of their cells alone are read.
ambiguous AS (
    SELECT sweep_id, device, model, precision, variant, mode, name_threads, list(cell_id) AS cell_ids
    FROM named
    GROUP BY sweep_id, device, model, precision, variant, mode, name_threads
    HAVING count(*) > 1
),
stated AS NOT MATERIALIZED (
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
),
shared AS (
    SELECT
        sweep_id, device, model, precision, variant, mode, name_threads,
        list_reduce(list(facts), LAMBDA one, other: list_intersect(one, other)) AS facts -- noqa
    FROM (SELECT * EXCLUDE (cell_ids), unnest(cell_ids) AS cell_id FROM ambiguous)
    JOIN stated USING (cell_id)
    GROUP BY sweep_id, device, model, precision, variant, mode, name_threads
)
SELECT
    cell_id,
    cell,
    sweep_id,
    -- What distinguishes it from others of the same name in the sweep, as a list of {fact, value}, NULL for an unknown
    -- value; NULL if there are none.
    nullif(list_filter(stated.facts, LAMBDA each: NOT list_contains(shared.facts, each)), []) AS differs
FROM named
JOIN shared USING (sweep_id, device, model, precision, variant, mode, name_threads)
JOIN stated USING (cell_id);
