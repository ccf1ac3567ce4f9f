-- Every runner with the last night that used it.
SELECT
    runner_sha256,
    source_sha256,
    platform,
    kind || coalesce(': ' || provenance, '') AS kind,
    runner_version,
    executorch_version,
    compiler,
    count(DISTINCT device) AS devices,
    sum(sessions) AS sessions,
    min(night) AS first_night,
    max(night) AS last_night
FROM runner_overview
GROUP BY ALL
ORDER BY last_night DESC NULLS LAST, platform, runner_sha256;
