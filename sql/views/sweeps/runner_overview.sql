CREATE OR REPLACE VIEW runner_overview AS
SELECT
    sweep_id,
    sweep.night,
    device.name AS device,
    emulated,
    variant,
    mode,
    runner.platform,
    runner.kind,
    runner_sha256,
    source_sha256,
    coalesce(source_sha256, runner_sha256) AS runner_source,
    compiler,
    runner_version,
    runner.executorch_version,
    runner.versions,
    provenance,
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

COMMENT ON VIEW runner_overview IS 'The runners of a sweep and what they measured.';
COMMENT ON COLUMN runner_overview.platform IS 'Platform that it was built for.';
COMMENT ON COLUMN runner_overview.kind IS 'wheel (built by the farm) or registered (built elsewhere).';
COMMENT ON COLUMN runner_overview.source_sha256 IS 'SHA-256 of its source; NULL if unknown.';
COMMENT ON COLUMN runner_overview.compiler IS 'Compiler that built it.';
COMMENT ON COLUMN runner_overview.runner_version IS 'Version of the runner.';
COMMENT ON COLUMN runner_overview.versions IS 'All versions recorded in its manifest, JSON.';
COMMENT ON COLUMN runner_overview.provenance IS 'Where a registered runner comes from.';
