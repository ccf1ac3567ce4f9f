-- Reads: _compared_verdict, series, _newest_night
-- Whether any figure of each series on each device got worse: one row per metric and night, judged with the nights
-- before it. The rows of the metric latency are those of `verdict`. A night without a figure has no row.
CREATE OR REPLACE VIEW metric_verdict AS
SELECT
    verdict.night,
    device,
    model,
    precision,
    variant,
    threads,
    -- latency, load time, first execution, peak memory, .pte size, planned memory, portable share, SME coverage or
    -- output error (the largest absolute one against eager PyTorch).
    metric,
    -- regression, suspected, improvement, suspected improvement, device slower, device faster, device worse or device
    -- better (neither model nor runner changed), no change, inaccurate (its outputs are beyond the limit of the recipe,
    -- see cell_accuracy), failed (no session has a result, see failed_session), unclear (one night of the device, or a
    -- comparison of the night that refuted the change), new (its first night), insufficient data or invalid
    -- environment. Less SME coverage is a regression; of the other metrics, more is.
    verdict,
    -- Mean of the middle half of the night's sessions: nanoseconds of a time, bytes of memory and size, 0 to 1 of a
    -- share or coverage, the absolute error of an output.
    night_value AS value,
    -- What it was compared with, in the unit of value: the median of the baseline nights, or the time of the old side
    -- where measured_again; NULL without a baseline.
    baseline_value,
    -- What was compared with it: value, or the time of the new side where measured_again.
    verdict.value AS compared_value,
    -- Whether a comparison of the night decided, in which model and runner of the last good night and of this one were
    -- measured again, interleaved: ratio and both figures of it are then of these sessions.
    verdict.sessions_a IS NOT NULL AS measured_again,
    -- compared_value / baseline_value, of a device with two states within each; NULL without a baseline and where that
    -- is 0.
    ratio,
    -- Lower end of the 95 % interval of the ratio; NULL if there is none.
    low,
    -- Upper end of the 95 % interval of the ratio; NULL if there is none.
    high,
    -- What differs between the last night of the baseline and the night since (else this one), as a list of {fact,
    -- before, after}, see `verdict`; NULL if nothing does.
    changed,
    -- The verdict in a sentence, with both figures.
    reason,
    -- What is no longer stored of the last good night, so that a suspected night cannot be compared with it the same
    -- night: `.pte file of` or `runner of` and that night; NULL if nothing is missing.
    missing,
    -- First night of the present step of a regression, suspected regression or improvement.
    since,
    -- Sessions with such a figure, of the newest cell of the night; SME coverage is one figure of the cell.
    sessions,
    invalid_sessions,
    -- Number of earlier nights that it was compared with.
    baseline_nights,
    baseline_from,
    -- Last night of the baseline that does not share the change.
    baseline_to,
    -- How far the night is from its baseline nights, in robust standard deviations; NULL for .pte size and planned
    -- memory, which do not vary.
    z,
    -- By how much the figure moves from night to night without a change, as a fraction of its baseline; NULL where that
    -- is 0.
    noise_floor,
    -- Whether the night is the newest of its series on its device; nights without a usable figure count too.
    verdict.night = newest.night AS is_newest,
    -- The day on which the night was measured, if that was later (`etfarm sweep --night A..B`): it raises no alarm.
    -- NULL otherwise.
    measured_later,
    sweep_id,
    series_id,
    -- Id of the cell, 16 hexadecimal digits: equal only for sessions of one content (see cell_overview), and the same
    -- in every warehouse.
    cell,
    baseline_cell
FROM _compared_verdict AS verdict
JOIN series USING (series_id)
JOIN _newest_night AS newest USING (series_id, device);
