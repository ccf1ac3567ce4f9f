-- Reads: incident_series, _compared_verdict, series
-- What incidents consist of: one row per figure of a series on a device that one made worse, with the figures of the
-- night that confirmed it.
CREATE OR REPLACE VIEW incident_part AS
SELECT
    incident_id,
    device,
    model,
    precision,
    variant,
    threads,
    metric,
    state,
    -- Figure of the night in the unit of the metric, see `metric_verdict`; where a comparison decided, the time of its
    -- side B.
    value,
    -- Figure of before: the median of the baseline nights, or where a comparison decided, the time of its side A.
    baseline_value,
    -- value / baseline_value, or within the states of the device that reason names; NULL without a baseline.
    ratio,
    -- Lower end of the 95 % interval of the ratio; NULL if there is none.
    low,
    -- Upper end of the 95 % interval of the ratio; NULL if there is none.
    high,
    onset,
    last_good,
    confirmed_on,
    closed_on,
    last_seen,
    reopened,
    good_nights,
    night,
    -- The verdict on that night in a sentence.
    reason,
    -- What is no longer stored of the last good night, see `verdict`.
    missing,
    kind,
    subject,
    series_id,
    incident_series.cell,
    good_cell,
    -- Commit of the sweep file in the last good night, its first digits; NULL if unknown.
    good_commit,
    -- That of the onset.
    bad_commit,
    -- Commits of the onset that the last good night did not have, the newest first, as a list of {id, author, subject};
    -- at most 20. NULL if a night recorded none.
    from_json(commits, '[{"id": "VARCHAR", "author": "VARCHAR", "subject": "VARCHAR"}]') AS commits,
    -- Whether these are all; NULL if commits is.
    has_all_commits
FROM incident_series
JOIN _compared_verdict USING (series_id, device, metric, night)
JOIN series USING (series_id);
