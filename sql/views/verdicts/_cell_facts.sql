-- Reads: cell, cell_made_from
-- What `changed` compares of a judged cell and of the cell of its last good night.
CREATE OR REPLACE VIEW _cell_facts AS
SELECT
    cell,
    night,
    sweep_id,
    -- What the cell consists of, its sources, and the state of its device.
    {
        pte_sha256: pte_sha256,
        runner_sha256: runner_sha256,
        executorch_version: executorch_version,
        serial: serial,
        os_version: os_version,
        launcher: launcher,
        executions: executions,
        warmup_executions: warmup_executions,
        versions: versions,
        source_sha256: source_sha256,
        converted_layers: converted_layers,
        source_commit: source_commit,
        temperature_c: temperature_c,
        governor: governor,
        battery: battery
    } AS facts
FROM cell
JOIN cell_made_from USING (cell_id);
