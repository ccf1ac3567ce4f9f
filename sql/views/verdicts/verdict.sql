CREATE OR REPLACE VIEW verdict AS
SELECT
    night,
    device,
    model,
    precision,
    variant,
    threads,
    verdict,
    ratio,
    low,
    high,
    value / 1e6 AS time_ms,
    sessions,
    invalid_sessions,
    z,
    noise_floor,
    baseline_nights,
    baseline_from,
    baseline_to,
    since,
    changed,
    reason,
    sweep_id,
    series_id,
    cell,
    baseline_cell,
    is_newest,
    cause,
    device_noise
FROM metric_verdict
LEFT JOIN series_cause USING (series_id, device, night)
LEFT JOIN (
    SELECT night, device, max(noise) AS device_noise
    FROM device_noise
    GROUP BY night, device
) USING (night, device)
WHERE metric = 'latency';

COMMENT ON VIEW verdict IS 'Whether each series on each device got slower: one row per night, judged by its latency with the nights before it; other figures are in metric_verdict. Emulated devices are not judged.';
COMMENT ON COLUMN verdict.verdict IS 'regression, suspected, improvement, device slower or device faster (neither model nor runner changed), no change, inaccurate (its outputs are beyond the limit of the recipe, see cell_accuracy), failed (no session has a result, see failed_session), insufficient data or invalid environment.';
COMMENT ON COLUMN verdict.ratio IS 'Time of the night over the median of its baseline nights: above 1 is slower; where a comparison of the same night confirmed a change, the ratio that it measured. NULL without a baseline.';
COMMENT ON COLUMN verdict.time_ms IS 'The time of the night in milliseconds, that of its newest cell; NULL without a session that counts.';
COMMENT ON COLUMN verdict.sessions IS 'Sessions that count: of the newest cell of the night.';
COMMENT ON COLUMN verdict.z IS 'How far the night is from its baseline nights, in robust standard deviations.';
COMMENT ON COLUMN verdict.noise_floor IS 'By how much the series moves from night to night without a change, as a fraction of its time.';
COMMENT ON COLUMN verdict.baseline_to IS 'Last of them.';
COMMENT ON COLUMN verdict.changed IS 'What differs from the night baseline_to: files, model source, versions, device, commit of the sweep file, temperature (by more than 5 C), governor, power; NULL if nothing does.';
COMMENT ON COLUMN verdict.reason IS 'The verdict in a sentence.';
COMMENT ON COLUMN verdict.device_noise IS 'How noisy the device was that night, see `device_noise`; NULL where it was not measured.';
COMMENT ON COLUMN verdict.cause IS 'Which operators differ from the last good night, and what each adds in milliseconds; with what is unexplained they add up to the change. Where the time did not change: operators that did, with what all operators share removed, see `operator_verdict`. NULL if there is nothing to name, if neither model nor runner changed, and for older nights without a change.';
