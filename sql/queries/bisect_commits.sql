-- The newest commits of the sweep file in the night $bad of a series on a device ($series_id, $device), then those of
-- the last night before it that ran $pte_sha256 and $runner_sha256; JSON, see session.
SELECT
    night,
    max_by(source_commits, started_at) AS commits
FROM _session
WHERE series_id = $series_id
    AND device = $device
    AND mode = 'timing'
    AND purpose IS NULL
    AND source_commits IS NOT NULL
    AND (
        night = $bad::DATE
        OR (night < $bad::DATE AND pte_sha256 = $pte_sha256 AND runner_sha256 = $runner_sha256)
    )
GROUP BY night
ORDER BY night DESC
LIMIT 2;
