-- Each night of a series on a device, the newest first, and what differed from the last good night.
SELECT
    night,
    cell,
    time_ms,
    ratio,
    low,
    high,
    verdict,
    sessions,
    invalid_sessions,
    noise_floor,
    since,
    changed,
    cause,
    reason,
    build,
    executorch_version
FROM verdict
LEFT JOIN (SELECT cell, build, executorch_version FROM cell) AS content USING (cell)
WHERE series_id = $series_id AND device = $device
ORDER BY night DESC;
