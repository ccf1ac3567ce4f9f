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
    count(*) AS sessions
FROM session
JOIN sweep USING (sweep_id)
JOIN device USING (device_id)
JOIN runner USING (runner_id)
GROUP BY ALL;

COMMENT ON VIEW runner_overview IS 'Which runners measured what in a sweep.';
COMMENT ON COLUMN runner_overview.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN runner_overview.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN runner_overview.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN runner_overview.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN runner_overview.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN runner_overview.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN runner_overview.platform IS 'Platform that it was built for.';
COMMENT ON COLUMN runner_overview.kind IS 'wheel (built by the farm) or registered (built elsewhere).';
COMMENT ON COLUMN runner_overview.runner_sha256 IS 'SHA-256 over all its files.';
COMMENT ON COLUMN runner_overview.source_sha256 IS 'SHA-256 of its source; NULL if it is not known.';
COMMENT ON COLUMN runner_overview.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
COMMENT ON COLUMN runner_overview.compiler IS 'Compiler that built it.';
COMMENT ON COLUMN runner_overview.runner_version IS 'Its own version.';
COMMENT ON COLUMN runner_overview.executorch_version IS 'Version of ExecuTorch in it.';
COMMENT ON COLUMN runner_overview.versions IS 'All versions that its manifest states, JSON.';
COMMENT ON COLUMN runner_overview.provenance IS 'Where a registered runner comes from.';
COMMENT ON COLUMN runner_overview.sessions IS 'Sessions behind the row.';
