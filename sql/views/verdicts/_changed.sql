CREATE OR REPLACE VIEW _changed AS
WITH
-- What a cell was made from and in which state its device was. Neither decides what may be pooled.
made_from AS (
    SELECT
        cell,
        max_by(model.versions, started_at) AS versions,
        max_by(model_source_sha256, started_at) AS source_sha256,
        max_by(_commit_name(source_commit, source_is_dirty), started_at) AS commit_name,
        median(temperature_c) AS temperature_c,
        string_agg(DISTINCT governor, ', ' ORDER BY governor) AS governor,
        CASE WHEN bool_and(charging) THEN 'charging' WHEN NOT bool_or(charging) THEN 'not charging' END AS battery
    FROM session_cell
    JOIN cell USING (cell_id)
    JOIN session USING (session_key)
    JOIN model USING (model_id)
    LEFT JOIN (SELECT * FROM device_conditions WHERE moment = 'before') USING (session_key)
    WHERE status = 'succeeded'
    GROUP BY cell
)
SELECT
    now.cell,
    before.cell AS baseline_cell,
    list_filter(
        [
            CASE
                WHEN now.pte_sha256 IS NOT DISTINCT FROM before.pte_sha256 THEN NULL
                WHEN made_now.source_sha256 = made_before.source_sha256 THEN '.pte file (same model source)'
                WHEN made_now.source_sha256 != made_before.source_sha256 THEN '.pte file, model source'
                ELSE '.pte file'
            END,
            CASE
                WHEN now.runner_sha256 IS NOT DISTINCT FROM before.runner_sha256 THEN NULL
                WHEN now.executorch_version != before.executorch_version
                THEN 'runner (ExecuTorch ' || _was(before.executorch_version, now.executorch_version) || ')'
                ELSE 'runner'
            END,
            CASE WHEN now.serial IS DISTINCT FROM before.serial THEN 'device ' || _was(before.serial, now.serial) END,
            CASE WHEN now.os_version IS DISTINCT FROM before.os_version THEN 'OS ' || _was(before.os_version, now.os_version) END,
            CASE WHEN now.executions != before.executions THEN 'executions ' || _was(before.executions, now.executions) END,
            CASE
                WHEN now.warmup_executions != before.warmup_executions
                THEN 'warm-up ' || _was(before.warmup_executions, now.warmup_executions)
            END,
            CASE
                WHEN made_now.commit_name != made_before.commit_name
                THEN 'commit ' || _was(made_before.commit_name, made_now.commit_name)
                WHEN made_now.commit_name = made_before.commit_name AND contains(made_now.commit_name, ' ')
                THEN 'commit ' || made_now.commit_name
            END,
            CASE
                WHEN abs(made_now.temperature_c - made_before.temperature_c) > 5
                THEN 'temperature ' || _was(round(made_before.temperature_c)::INTEGER, round(made_now.temperature_c)::INTEGER) || ' C'
            END,
            CASE WHEN made_now.governor != made_before.governor THEN 'governor ' || _was(made_before.governor, made_now.governor) END,
            CASE WHEN made_now.battery != made_before.battery THEN 'battery ' || _was(made_before.battery, made_now.battery) END
        ]
        || list_transform(
            list_filter(
                json_keys(coalesce(made_now.versions, '{}')),
                lambda name: (made_now.versions ->> name) IS DISTINCT FROM (made_before.versions ->> name)
            ),
            lambda name: name || ' ' || _was((made_before.versions ->> name), (made_now.versions ->> name))
        ),
        lambda change: change IS NOT NULL
    ) AS changes
FROM (
    SELECT cell, baseline_cell FROM series_verdict
    UNION
    SELECT cell_b, cell_a FROM comparison_result
) AS judged
JOIN cell AS now ON now.cell = judged.cell
JOIN cell AS before ON before.cell = judged.baseline_cell
LEFT JOIN made_from AS made_now ON made_now.cell = now.cell
LEFT JOIN made_from AS made_before ON made_before.cell = before.cell;

COMMENT ON VIEW _changed IS 'What differs between a judged cell and the cell of its last good night, and between both sides of a comparison. Private: may change with any version.';
COMMENT ON COLUMN _changed.changes IS 'The differences as texts, such as `runner` or `OS 14 -> 15`; an empty list if there are none.';
