-- What differs between two cells (`facts` of _cell_facts), as a list of _change; NULL if nothing does. Two facts are
-- listed although they are equal: the model source of another .pte file, and a commit with uncommitted changes. The
-- author and uncommitted changes of a commit follow it where they are known and there are any.
CREATE OR REPLACE MACRO _changes(before, now) AS
    CASE WHEN before IS NOT NULL AND now IS NOT NULL THEN nullif(
        list_filter(
            [
                CASE
                    WHEN now.pte_sha256 IS DISTINCT FROM before.pte_sha256
                    THEN _change('.pte file', left(before.pte_sha256, 8), left(now.pte_sha256, 8))
                END,
                CASE
                    WHEN now.pte_sha256 IS DISTINCT FROM before.pte_sha256
                        AND before.source_sha256 IS NOT NULL
                        AND now.source_sha256 IS NOT NULL
                    THEN _change('model source', left(before.source_sha256, 8), left(now.source_sha256, 8))
                END,
                CASE
                    WHEN now.converted_layers != before.converted_layers
                    THEN _change('converted layers', before.converted_layers, now.converted_layers)
                END,
                CASE
                    WHEN now.runner_sha256 IS DISTINCT FROM before.runner_sha256
                    THEN _change('runner', left(before.runner_sha256, 8), left(now.runner_sha256, 8))
                END,
                CASE
                    WHEN now.runner_sha256 IS DISTINCT FROM before.runner_sha256
                        AND now.executorch_version != before.executorch_version
                    THEN _change('ExecuTorch', before.executorch_version, now.executorch_version)
                END,
                CASE
                    WHEN now.serial IS DISTINCT FROM before.serial
                    THEN _change('device', before.serial, now.serial)
                END,
                CASE
                    WHEN now.os_version IS DISTINCT FROM before.os_version
                    THEN _change('OS', before.os_version, now.os_version)
                END,
                CASE
                    WHEN now.launcher IS DISTINCT FROM before.launcher
                    THEN _change('launcher', before.launcher, now.launcher)
                END,
                CASE
                    WHEN now.executions != before.executions
                    THEN _change('executions', before.executions, now.executions)
                END,
                CASE
                    WHEN now.warmup_executions != before.warmup_executions
                    THEN _change('warm-up', before.warmup_executions, now.warmup_executions)
                END,
                CASE
                    WHEN _are_commits_unlike(before.source_commit, now.source_commit)
                    THEN _change('commit', left(before.source_commit.id, 7), left(now.source_commit.id, 7))
                END,
                CASE
                    WHEN _are_commits_unlike(before.source_commit, now.source_commit)
                        AND coalesce(before.source_commit.author, now.source_commit.author) IS NOT NULL
                    THEN _change('commit author', before.source_commit.author, now.source_commit.author)
                END,
                CASE
                    WHEN _are_commits_unlike(before.source_commit, now.source_commit)
                        AND (before.source_commit.is_dirty OR now.source_commit.is_dirty)
                    THEN _change('uncommitted changes', before.source_commit.is_dirty, now.source_commit.is_dirty)
                END,
                CASE
                    WHEN abs(now.temperature_c - before.temperature_c) > 5
                    THEN _change(
                        'temperature', round(before.temperature_c)::INTEGER, round(now.temperature_c)::INTEGER
                    )
                END,
                CASE
                    WHEN now.governor != before.governor THEN _change('governor', before.governor, now.governor)
                END,
                CASE WHEN now.battery != before.battery THEN _change('battery', before.battery, now.battery) END
            ]
            || list_transform(
                list_filter(
                    json_keys(coalesce(now.versions, '{}')),
                    LAMBDA name: (now.versions ->> name) IS DISTINCT FROM (before.versions ->> name)
                ),
                LAMBDA name: _change(name, (before.versions ->> name), (now.versions ->> name))
            ),
            LAMBDA change: change IS NOT NULL
        ), []) END;
