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
            'seed ' || coalesce(seed::VARCHAR, 'unknown'),
            'pte ' || coalesce(left(pte_sha256, 8), 'unknown'),
            'method ' || coalesce(method, 'unknown'),
            'inputs ' || coalesce(left(inputs_sha256, 8), 'unknown'),
            'runner ' || coalesce(left(runner_sha256, 8), 'unknown'),
            'serial ' || coalesce(serial, 'unknown'),
            'build ' || coalesce(build, 'unknown'),
            'OS ' || coalesce(os_version, 'unknown'),
            'device model ' || coalesce(device_model, 'unknown'),
            'SoC ' || coalesce(soc, 'unknown'),
            'SME2 of the device ' || coalesce(sme2::VARCHAR, 'unknown'),
            'emulated ' || coalesce(emulated::VARCHAR, 'unknown'),
            'platform ' || coalesce(platform, 'unknown'),
            'executions ' || executions,
            'warm-up ' || warmup_executions
        ] AS facts
    FROM named
    JOIN ambiguous USING (sweep_id, name)
),
shared AS (
    SELECT sweep_id, name, list_reduce(list(facts), (one, other) -> list_intersect(one, other)) AS facts
    FROM stated
    GROUP BY sweep_id, name
)
SELECT
    cell_id,
    cell,
    sweep_id,
    -- What distinguishes it from others of the same name in the sweep; NULL if there are none.
    nullif(
        array_to_string(list_filter(stated.facts, LAMBDA fact: NOT list_contains(shared.facts, fact)), ', '), ''
    ) AS differs
FROM stated
JOIN shared USING (sweep_id, name);
