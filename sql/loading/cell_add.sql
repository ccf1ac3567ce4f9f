-- Give each new session its cell. This is the one rule about what may be pooled: sessions are pooled, and runs of them
-- compared, only if everything in `content` is equal. Facts of a device that change on their own (host name, labels,
-- free memory, cores that are online) stay out of it.
CREATE OR REPLACE TEMP TABLE session_content AS
WITH
content AS (
    SELECT
        session_key,
        sweep_id,
        sweep.night,
        device.name AS device,
        transport,
        emulated,
        serial,
        build,
        os_version,
        device.platform,
        device_model,
        soc,
        sme2,
        launcher,
        model.name AS model,
        precision,
        seed,
        pte_sha256,
        method,
        inputs_sha256,
        runner_sha256,
        coalesce(source_sha256, runner_sha256) AS runner_source,
        runner.executorch_version,
        variant,
        mode,
        threads,
        executions,
        warmup_executions,
        purpose,
        comparison,
        arm
    FROM session
    JOIN sweep USING (sweep_id)
    JOIN device USING (device_id)
    JOIN model USING (model_id)
    LEFT JOIN runner USING (runner_id)
    WHERE session_key NOT IN (SELECT session_key FROM session_cell)
),
hashed AS (
    SELECT
        *,
        -- JSON keeps NULL apart from a text, and one column apart from the next.
        CASE
            WHEN launcher IS NULL
                THEN json_array(device, emulated, serial, build, os_version, platform, device_model, soc, sme2)
            ELSE json_array(device, emulated, serial, build, os_version, platform, device_model, soc, sme2, launcher)
        END AS of_device,
        -- Of an imported session it is not known what is executed with the program.
        CASE
            WHEN inputs_sha256 IS NULL THEN json_array(model, precision, seed, pte_sha256)
            ELSE json_array(model, precision, seed, pte_sha256, method, inputs_sha256)
        END AS of_model,
        json_array(runner_sha256, runner_source) AS of_runner,
        -- A session's own side of a comparison is never pooled with the other, even if both measure the same.
        CASE WHEN purpose IS NULL THEN to_json(threads) ELSE json_array(threads, purpose, comparison, arm) END
            AS of_run,
        json_array(sweep_id, of_device, of_model, of_runner, of_run) AS shared
    FROM content
)
SELECT
    * EXCLUDE (of_device, of_model, of_runner, of_run, shared),
    left(sha256(json_array(shared, variant, mode, executions, warmup_executions)::VARCHAR), 16) AS cell,
    left(sha256(json_array(shared, mode, executions, warmup_executions)::VARCHAR), 16) AS pair,
    left(sha256(json_array(shared, variant)::VARCHAR), 16) AS subject,
    left(sha256(shared::VARCHAR), 16) AS subject_pair,
    left(
        sha256(json_array(sweep_id, of_device, of_model, of_runner, mode, executions, warmup_executions)::VARCHAR), 16
    ) AS thread_group
FROM hashed;

INSERT INTO cell BY NAME
WITH
new AS (
    SELECT DISTINCT ON (cell) *
    FROM session_content
    WHERE cell NOT IN (SELECT cell FROM cell)
    ORDER BY cell, session_key
)
SELECT
    (SELECT coalesce(max(cell_id), 0) FROM cell) + row_number() OVER (ORDER BY session_key) AS cell_id,
    * EXCLUDE (session_key)
FROM new;

INSERT INTO session_cell BY NAME
SELECT session_key, cell_id
FROM session_content
JOIN cell USING (cell);

INSERT INTO touched_cell BY NAME
SELECT DISTINCT cell_id
FROM session_content
JOIN cell USING (cell);
