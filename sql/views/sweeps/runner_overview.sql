-- Reads: session, sweep, device, runner
-- The runners of a sweep and what they measured.
CREATE OR REPLACE VIEW runner_overview AS
SELECT
    sweep_id,
    sweep.night,
    -- Name of the device in the inventory; `unknown` for a loose ETDump.
    device.name AS device,
    emulated,
    variant,
    mode,
    -- Platform that it was built for.
    runner.platform,
    runner.kind,
    runner_sha256,
    source_sha256,
    -- SHA-256 of the runner's source, or of the runner if its source is unknown; runners that differ in it are never
    -- mixed. NULL for a loose ETDump.
    coalesce(source_sha256, runner_sha256) AS runner_source,
    compiler,
    runner_version,
    runner.executorch_version,
    runner.versions,
    provenance,
    -- Sessions behind the row.
    sum(sessions)::BIGINT AS sessions
FROM (
    SELECT sweep_id, device_id, runner_id, variant, mode, count(*) AS sessions
    FROM session
    GROUP BY ALL
)
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
JOIN runner USING (runner_id)
GROUP BY ALL;
