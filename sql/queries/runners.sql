-- The runners of the sweep, their devices and what they were used for.
SELECT
    runner_sha256,
    source_sha256,
    platform,
    kind || coalesce(': ' || provenance, '') AS kind,
    runner_version,
    executorch_version,
    compiler,
    string_agg(DISTINCT device, ', ' ORDER BY device) AS devices,
    string_agg(DISTINCT variant || ' ' || mode, ', ' ORDER BY variant || ' ' || mode) AS used_for,
    sum(sessions) AS sessions
FROM runner_overview
WHERE sweep_id = $sweep_id
GROUP BY ALL
ORDER BY platform, any_value(runner_overview.kind), runner_sha256;
