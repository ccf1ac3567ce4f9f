-- Reads: _compared_verdict, series_verdict, series, series_cause, _cell_facts, incident_series
-- What pages show of the verdicts: every one on latency, and the changes of other metrics, suspected ones only for the
-- worse. The size of a .pte file and its planned memory are listed once, not for each series that runs it.
CREATE OR REPLACE VIEW _shown_verdict AS
WITH
judged AS (
    SELECT
        compared.* EXCLUDE (
            comparison, changed, night_before, value_before, cell_before, noise_floor_change
        ),
        model,
        precision,
        variant,
        threads,
        CASE WHEN metric = 'latency' THEN cause END AS cause
    FROM _compared_verdict AS compared
    JOIN series USING (series_id)
    LEFT JOIN series_cause USING (series_id, device, night)
    WHERE metric = 'latency'
        OR verdict IN ('regression', 'improvement', 'suspected')
        OR starts_with(verdict, 'device')
    QUALIFY metric NOT IN ('.pte size', 'planned memory')
        OR row_number() OVER (
            PARTITION BY sweep_id, night, metric, model, precision, baseline_value, value
            ORDER BY device, threads, variant
        ) = 1
)
SELECT
    * EXCLUDE (facts_now, facts_before, incident, first_cell),
    incident.incident_id AS incident_id,
    -- What differs between the last good night and the onset of the incident, or else between the nights baseline_to
    -- and since, see _changes; NULL if nothing does.
    _changes(facts_before, facts_now) AS changed,
    -- Sorts the worst first.
    row(
        _verdict_place(verdict),
        metric != 'latency',
        value IS NULL,
        -coalesce(abs(ln(nullif(ratio, 0))), -1),
        model,
        device,
        threads,
        precision <> 'fp32',
        precision,
        variant
    ) AS place
-- As subqueries, since a join reads all cells of the farm.
FROM (
    SELECT
        *,
        (SELECT facts FROM _cell_facts WHERE _cell_facts.cell = coalesce(incident.cell, first_cell, judged.cell))
            AS facts_now,
        (SELECT facts FROM _cell_facts WHERE _cell_facts.cell = coalesce(incident.good_cell, baseline_cell))
            AS facts_before
    FROM (
        SELECT
            *,
            (
                SELECT
                    arg_max(
                        struct_pack(incident_id := incident_id, cell := onset.cell, good_cell := good_cell), onset
                    )
                FROM incident_series AS onset
                WHERE onset.series_id = judged.series_id
                    AND onset.device = judged.device
                    AND onset.metric = judged.metric
                    AND onset.onset <= judged.night
                    AND (onset.closed_on IS NULL OR onset.closed_on > judged.night)
                    AND NOT list_contains(onset.good_nights, judged.night)
            ) AS incident,
            -- A commit of a later night did not make the step.
            (
                SELECT onset.cell
                FROM series_verdict AS onset
                WHERE onset.series_id = judged.series_id
                    AND onset.device = judged.device
                    AND onset.metric = judged.metric
                    AND onset.night = judged.since
                    AND onset.night > judged.baseline_to
            ) AS first_cell
        FROM judged
    ) AS judged
);
