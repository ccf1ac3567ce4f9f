-- The runners of a sweep, or of all sweeps without one: their devices, what they were used for, and when.
SELECT
    runner_sha256,
    source_sha256,
    platform,
    kind || coalesce(': ' || provenance, '') AS kind,
    runner_version,
    executorch_version,
    compiler,
    string_agg(DISTINCT device, ', ' ORDER BY device) AS devices,
    count(DISTINCT device) AS device_count,
    string_agg(DISTINCT variant || ' ' || mode, ', ' ORDER BY variant || ' ' || mode) AS used_for,
    sum(sessions) AS sessions,
    min(night) AS first_night,
    max(night) AS last_night
FROM runner_overview
WHERE $sweep_id IS NULL OR sweep_id = $sweep_id
GROUP BY ALL
ORDER BY last_night DESC NULLS LAST, platform, any_value(runner_overview.kind), runner_sha256, source_sha256;
