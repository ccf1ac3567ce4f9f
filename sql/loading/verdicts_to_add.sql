-- The rows of `new_verdict`, which are complete series, with what views show beside a verdict: the cell of the last
-- good night and what differed from it in the first night of the step, and of the latency the measured night before it.
-- All of it is about earlier nights: a touched cell removes the verdicts of its night and of all later nights of its
-- series.
WITH
of_series AS (
    SELECT series_id, device, metric, night, cell, value, noise_floor FROM new_verdict
    UNION ALL
    SELECT series_id, device, metric, night, cell, value, noise_floor
    FROM series_verdict
    WHERE series_id IN (SELECT series_id FROM new_verdict)
),
beside AS (
    SELECT
        series_id,
        device,
        metric,
        night,
        CASE WHEN value IS NOT NULL THEN lag(night) OVER measured END AS night_before,
        CASE WHEN value IS NOT NULL THEN lag(value) OVER measured END AS value_before,
        CASE WHEN value IS NOT NULL THEN lag(cell) OVER measured END AS cell_before,
        noise_floor / nullif(median(noise_floor) OVER earlier, 0) AS noise_floor_change
    FROM of_series
    WHERE metric = 'latency'
    WINDOW
        measured AS (PARTITION BY series_id, device, value IS NULL ORDER BY night),
        earlier AS (
            PARTITION BY series_id, device ORDER BY night ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING
        )
),
complete AS (
    SELECT
        new_verdict.*,
        before.cell AS baseline_cell,
        -- A commit of a later night did not make the step.
        coalesce(onset.cell, new_verdict.cell) AS first_cell,
        CASE WHEN onset.cell IS NULL THEN new_verdict.night ELSE onset.night END AS first_night,
        night_before,
        value_before,
        cell_before,
        noise_floor_change
    FROM new_verdict
    LEFT JOIN of_series AS before
        ON before.series_id = new_verdict.series_id
            AND before.device = new_verdict.device
            AND before.metric = new_verdict.metric
            AND before.night = new_verdict.baseline_to
    LEFT JOIN of_series AS onset
        ON onset.series_id = new_verdict.series_id
            AND onset.device = new_verdict.device
            AND onset.metric = new_verdict.metric
            AND onset.night = new_verdict.since
            AND onset.night > new_verdict.baseline_to
    LEFT JOIN beside
        ON beside.series_id = new_verdict.series_id
            AND beside.device = new_verdict.device
            AND beside.metric = new_verdict.metric
            AND beside.night = new_verdict.night
),
judged_pair AS (
    SELECT DISTINCT cell, night, first_cell, first_night, baseline_cell, baseline_to FROM complete
),
-- By night too, so that a scan of cells reads those of few nights.
facts AS MATERIALIZED (
    SELECT _cell_facts.*
    FROM (
        SELECT cell, night
        FROM judged_pair
        WHERE cell IS NOT NULL
        UNION
        SELECT first_cell, first_night
        FROM judged_pair
        WHERE first_cell IS NOT NULL
        UNION
        SELECT baseline_cell, baseline_to
        FROM judged_pair
        WHERE baseline_cell IS NOT NULL
    )
    JOIN _cell_facts USING (cell, night)
),
compared AS (
    SELECT
        pair.cell,
        pair.first_cell,
        pair.baseline_cell,
        now.sweep_id,
        _changes(before.facts, onset.facts) AS changed
    FROM (SELECT DISTINCT cell, first_cell, baseline_cell FROM judged_pair) AS pair
    JOIN facts AS now ON now.cell = pair.cell
    JOIN facts AS onset ON onset.cell = first_cell
    LEFT JOIN facts AS before ON before.cell = baseline_cell
)
SELECT
    complete.* EXCLUDE (first_cell, first_night)
    REPLACE (concat_ws(': ', 'measured later (' || measured_later || ')', reason) AS reason),
    compared.sweep_id,
    changed,
    measured_later
FROM complete
LEFT JOIN compared
    ON compared.cell = complete.cell
        AND compared.first_cell = complete.first_cell
        AND compared.baseline_cell IS NOT DISTINCT FROM complete.baseline_cell
LEFT JOIN _measured_later AS later
    ON later.series_id = complete.series_id
        AND later.device = complete.device
        AND later.night = complete.night
        AND later.sweep_id IS NOT DISTINCT FROM compared.sweep_id;
