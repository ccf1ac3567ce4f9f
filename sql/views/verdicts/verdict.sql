-- Reads: metric_verdict, series_cause, device_noise
-- Whether each series on each device got slower: one row per night, judged by its latency with the nights before it;
-- other figures are in metric_verdict. Emulated devices are not judged.
CREATE OR REPLACE VIEW verdict AS
SELECT
    night,
    device,
    model,
    precision,
    variant,
    threads,
    -- regression, suspected, improvement, suspected improvement, device slower or device faster (neither model nor
    -- runner changed), no change, inaccurate (its outputs are beyond the limit of the recipe, see cell_accuracy),
    -- failed (no session has a result, see failed_session), unclear (one night of the device, or a comparison of the
    -- night that refuted the change), new (its first night), insufficient data or invalid environment.
    verdict,
    -- The time of the night in milliseconds, that of its newest cell; NULL without a session that counts.
    value / 1e6 AS time_ms,
    -- What it was compared with: the median of its baseline nights, or the time of the old side where measured_again.
    -- NULL without a baseline.
    baseline_value / 1e6 AS before_ms,
    -- What was compared with it: time_ms, or the time of the new side where measured_again.
    compared_value / 1e6 AS after_ms,
    -- after_ms / before_ms, of a device with two states within each: above 1 is slower. NULL without a baseline.
    ratio,
    -- Whether a comparison of the night decided, in which model and runner of the last good night and of this one were
    -- measured again, interleaved: ratio and both times of it are then of these sessions, and not of time_ms.
    measured_again,
    low,
    high,
    -- What differs between the night baseline_to and the night since (else this one), as a list of {fact, before,
    -- after}: files and model source (the first digits of their hashes), versions, device, commit of the sweep file,
    -- temperature (in C, by more than 5), governor, power. NULL if nothing differs. before and after are NULL if they
    -- are unknown. They are equal for an unchanged source of a changed file, and for a commit with uncommitted changes,
    -- which a fact of that name states.
    changed,
    -- Which operators differ from the last good night, and what each adds in milliseconds; with what is unexplained
    -- they add up to the change. Where the time did not change: operators that did, with what all operators share
    -- removed, see `operator_verdict`. NULL if there is nothing to name, if neither model nor runner changed, and for
    -- older nights without a change.
    cause,
    -- The verdict in a sentence.
    reason,
    missing,
    since,
    -- Sessions that count: of the newest cell of the night.
    sessions,
    invalid_sessions,
    baseline_nights,
    baseline_from,
    baseline_to,
    -- How far the night is from its baseline nights, in robust standard deviations.
    z,
    -- By how much the series moves from night to night without a change, as a fraction of its time.
    noise_floor,
    -- How noisy the device was in the night, see `device_noise`; NULL where it was not measured.
    device_noise,
    is_newest,
    measured_later,
    sweep_id,
    series_id,
    cell,
    baseline_cell
FROM metric_verdict
LEFT JOIN series_cause USING (series_id, device, night)
LEFT JOIN (
    SELECT night, device, max(noise) AS device_noise
    FROM device_noise
    GROUP BY night, device
) USING (night, device)
WHERE metric = 'latency';
