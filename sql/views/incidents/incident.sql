-- Reads: incident_part, _cell_facts, series_verdict, series
-- Incidents: what got worse from one cause, over all series, devices and figures that it moved, until it is closed.
-- What changed is what differs between the last good night and the onset, whatever changed later.
CREATE OR REPLACE VIEW incident AS
WITH
part AS (
    FROM incident_part
),
whole AS (
    SELECT
        incident_id,
        any_value(kind) AS kind,
        any_value(subject) AS subject,
        CASE
            WHEN bool_or(state = 'confirmed') THEN 'confirmed'
            WHEN bool_or(state = 'suspected') THEN 'suspected'
            WHEN bool_or(state = 'accepted') THEN 'accepted'
            WHEN bool_or(state = 'fixed') THEN 'fixed'
            ELSE 'withdrawn'
        END AS state,
        min(onset) AS onset,
        max(last_good) FILTER (last_good < onset) AS last_good,
        min(confirmed_on) AS confirmed_on,
        CASE WHEN bool_and(closed_on IS NOT NULL) THEN max(closed_on) END AS closed_on,
        max(last_seen) AS last_seen,
        max(reopened) AS reopened,
        list(part) AS parts,
        list_sort(list(DISTINCT model)) AS models,
        list_sort(list(DISTINCT device)) AS devices,
        list_sort(list(DISTINCT precision)) AS precisions,
        list_sort(list(DISTINCT metric)) AS metrics,
        count(distinct(series_id, device)) AS series,
        count(distinct(series_id, device)) FILTER (closed_on IS NULL) AS open_series,
        -- The part with the largest change speaks for all: times first.
        first(
            part ORDER BY metric != 'latency', closed_on IS NOT NULL, abs(ln(ratio)) DESC NULLS LAST, device, series_id
        )
            AS worst,
        -- The part whose onset is the nearest to its last good night states what changed.
        first(
            part
            ORDER BY
                last_good DESC NULLS LAST,
                onset,
                metric != 'latency',
                abs(ln(ratio)) DESC NULLS LAST,
                device,
                series_id
        ) AS nearest
    FROM part
    GROUP BY incident_id
),
-- Nights in which the roof of a device was lower: the same program and runner took longer for its product.
lower_roof AS (
    SELECT device, night, max(ratio) AS ratio
    FROM series_verdict
    JOIN series USING (series_id)
    WHERE _is_roof(model)
        AND metric = 'latency'
        AND verdict IN ('device slower', 'unclear')
        AND ratio > 1
    GROUP BY device, night
)
SELECT
    -- Id of the incident, for `etfarm decisions`: the same in every warehouse that has its nights.
    incident_id,
    -- model (another program, runner or setting made it worse), device (neither changed), accuracy (outputs beyond
    -- their limit) or failure (no session has a result).
    kind,
    -- A model, a device, `runner` and the first digits of its hash, or `commit` and its id.
    subject,
    -- confirmed or suspected while it is open; accepted, fixed or withdrawn after that. It is open while a part of it
    -- is.
    state,
    onset,
    last_good,
    confirmed_on,
    closed_on,
    last_seen,
    reopened,
    -- The nights in which it was closed everywhere before it came back: they do not show it.
    list_filter(
        list_distinct(flatten(list_transform(parts, LAMBDA each: each.good_nights))),
        LAMBDA good: len(
            list_filter(
                parts,
                LAMBDA each: each.onset <= good
                AND (each.closed_on IS NULL OR each.closed_on > good)
                AND NOT list_contains(each.good_nights, good)
            )
        ) = 0
    ) AS good_nights,
    -- Models that it made worse; the roof of a device only where it made no model worse.
    coalesce(nullif(list_filter(models, LAMBDA each: NOT _is_roof(each)), []), models) AS models,
    -- Devices on which it made them worse.
    devices,
    -- Precisions in which it did.
    precisions,
    -- Figures that are worse.
    metrics,
    -- Number of series on devices.
    series,
    -- Number of them for which it is open.
    open_series,
    -- The largest change, of a time if there is one.
    worst.ratio AS ratio,
    -- Lower end of its 95 % interval; NULL if there is none.
    worst.low AS low,
    -- Upper end of its 95 % interval; NULL if there is none.
    worst.high AS high,
    -- How many times as long the product of the roof took on its device in the night of the onset, with its program and
    -- runner unchanged: then the device is slower, whatever else changed. NULL if that night shows none.
    (
        SELECT max(lower_roof.ratio)
        FROM lower_roof
        WHERE lower_roof.night = whole.onset AND list_contains(whole.devices, lower_roof.device)
    ) AS roof_ratio,
    -- The figure of that change.
    worst.metric AS metric,
    -- Its device.
    worst.device AS worst_device,
    -- Its model.
    worst.model AS worst_model,
    -- Its precision.
    worst.precision AS worst_precision,
    -- Its variant.
    worst.variant AS worst_variant,
    -- Its number of threads.
    worst.threads AS worst_threads,
    -- Its figure in the unit of the metric.
    worst.value AS value,
    -- The figure of before.
    worst.baseline_value AS baseline_value,
    -- The verdict on it in a sentence.
    worst.reason AS reason,
    -- What is no longer stored of its last good night, see `verdict`.
    worst.missing AS missing,
    -- Its series.
    worst.series_id AS series_id,
    -- The night of these figures.
    worst.night AS night,
    -- What differs between the last good night and the onset, as a list of {fact, before, after}, see `verdict`. The
    -- commit is left out if commits states it.
    list_filter(
        _changes(before.facts, now.facts),
        LAMBDA each: each.fact NOT IN ('commit', 'commit author', 'uncommitted changes')
        OR nearest.commits IS NULL
        OR now.facts.source_commit.is_dirty
    ) AS changed,
    -- Commit of the sweep file in the last good night, its first digits; NULL if unknown.
    nearest.good_commit AS good_commit,
    -- That of the onset.
    nearest.bad_commit AS bad_commit,
    -- Commits of the onset that the last good night did not have, the newest first, as a list of {id, author, subject};
    -- at most 20. NULL if a night recorded none.
    nearest.commits AS commits,
    -- Whether these are all; NULL if commits is.
    nearest.has_all_commits AS has_all_commits,
    -- Cell of the onset, of the part that states what changed; NULL without a result.
    nearest.cell AS cell,
    -- That of the last good night.
    nearest.good_cell AS good_cell
FROM whole
LEFT JOIN LATERAL (SELECT facts FROM _cell_facts WHERE _cell_facts.cell = nearest.cell) AS now ON TRUE
LEFT JOIN LATERAL (SELECT facts FROM _cell_facts WHERE _cell_facts.cell = nearest.good_cell) AS before ON TRUE;
