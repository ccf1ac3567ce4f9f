-- What differs between two cells (`facts` of _cell_facts), such as `runner, OS 14 -> 15`; NULL if nothing does.
CREATE OR REPLACE MACRO _changes(before, now) AS
    CASE WHEN before IS NOT NULL AND now IS NOT NULL THEN nullif(array_to_string(
        list_filter(
            [
                CASE
                    WHEN now.pte_sha256 IS NOT DISTINCT FROM before.pte_sha256 THEN NULL
                    WHEN now.source_sha256 = before.source_sha256 THEN '.pte file (same model source)'
                    WHEN now.source_sha256 != before.source_sha256 THEN '.pte file, model source'
                    ELSE '.pte file'
                END,
                CASE
                    WHEN now.runner_sha256 IS NOT DISTINCT FROM before.runner_sha256 THEN NULL
                    WHEN now.executorch_version != before.executorch_version
                    THEN 'runner (ExecuTorch ' || _was(before.executorch_version, now.executorch_version) || ')'
                    ELSE 'runner'
                END,
                CASE
                    WHEN now.serial IS DISTINCT FROM before.serial THEN 'device ' || _was(before.serial, now.serial)
                END,
                CASE
                    WHEN
                        now.os_version IS DISTINCT FROM before.os_version
                        THEN 'OS ' || _was(before.os_version, now.os_version)
                END,
                CASE
                    WHEN
                        now.executions != before.executions
                        THEN 'executions ' || _was(before.executions, now.executions)
                END,
                CASE
                    WHEN now.warmup_executions != before.warmup_executions
                    THEN 'warm-up ' || _was(before.warmup_executions, now.warmup_executions)
                END,
                CASE
                    WHEN now.commit_name != before.commit_name
                    THEN 'commit ' || _was(before.commit_name, now.commit_name)
                    WHEN now.commit_name = before.commit_name
                        AND ends_with(now.commit_name, ' with uncommitted changes')
                    THEN 'commit ' || now.commit_name
                END,
                CASE
                    WHEN abs(now.temperature_c - before.temperature_c) > 5
                    THEN 'temperature '
                        || _was(round(before.temperature_c)::INTEGER, round(now.temperature_c)::INTEGER)
                        || ' C'
                END,
                CASE WHEN now.governor != before.governor THEN 'governor ' || _was(before.governor, now.governor) END,
                CASE WHEN now.battery != before.battery THEN 'battery ' || _was(before.battery, now.battery) END
            ]
            || list_transform(
                list_filter(
                    json_keys(coalesce(now.versions, '{}')),
                    LAMBDA name: (now.versions ->> name) IS DISTINCT FROM (before.versions ->> name)
                ),
                LAMBDA name: name || ' ' || _was((before.versions ->> name), (now.versions ->> name))
            ),
            LAMBDA change: change IS NOT NULL
        ), ', '), '') END;
