-- Reads: prediction, _cell, series_verdict, cell, cell_time, cell_operator, cell_node, node
-- What the time of a cell would be if one thing about its operators changed, beside the time of the next night of its
-- series where it did. There is a row for the newest cell of each series on each device, and for the last one before
-- each change of the program or runner.
CREATE OR REPLACE VIEW what_if AS
WITH
answer AS (
    SELECT
        prediction.*,
        cell.runner_source,
        measured.cell_id AS measured_id,
        later.night AS measured_night,
        measured.sweep_id AS measured_sweep_id,
        measured.cell AS measured_cell,
        execute_ns / typical_runs / 1e6 AS measured_ms,
        typical_runs AS measured_runs,
        coalesce(measured.runner_source <> cell.runner_source, FALSE) AS runner_changed
    FROM prediction
    JOIN cell USING (cell_id)
    JOIN (
        SELECT series_id, device, night, cell, cell_before FROM series_verdict WHERE metric = 'latency'
    ) AS later
        ON later.series_id = prediction.series_id
            AND later.device = prediction.device
            AND later.cell_before = cell.cell
    JOIN cell AS measured ON measured.cell = later.cell
    JOIN cell_time ON cell_time.cell_id = measured.cell_id
),
still_portable AS (
    SELECT cell_id AS measured_id, list(operator) AS portable
    FROM cell_operator
    WHERE kind = 'portable' AND cell_id IN (SELECT measured_id FROM answer)
    GROUP BY cell_id
),
later_operator AS (
    SELECT cell_id AS measured_id, name, sum(self_ns) AS self_ns
    FROM cell_node
    JOIN node USING (node_id)
    WHERE cell_id IN (SELECT measured_id FROM answer WHERE kind = 'peers')
    GROUP BY cell_id, name
),
changed AS (
    SELECT answer.*
    FROM answer
    LEFT JOIN still_portable USING (measured_id)
    LEFT JOIN later_operator
        ON later_operator.measured_id = answer.measured_id AND later_operator.name = operators[1]
    WHERE CASE kind
            WHEN 'delegated' THEN NOT list_has_any(operators, coalesce(portable, []))
            ELSE coalesce(self_ns / measured_runs / 1e6 <= changed_ms, FALSE)
        END
),
newest AS (
    SELECT series_id, device, max(night) AS newest_night
    FROM series_verdict
    WHERE metric = 'latency' AND value IS NOT NULL
    GROUP BY series_id, device
),
predicted AS (
    SELECT prediction.* EXCLUDE (device, night), night = newest_night AS is_newest
    FROM prediction
    LEFT JOIN newest USING (series_id, device)
),
-- Where several changed at once, what was measured is all of them together. They are independent of each other.
together AS (
    SELECT
        * EXCLUDE (device, night),
        count(*) OVER at_once AS changed_at_once,
        cell_ms + sum(predicted_ms - cell_ms) OVER at_once AS expected_ms,
        expected_ms - sqrt(sum((predicted_ms - low_ms) ** 2) OVER at_once) AS expected_low_ms,
        expected_ms + sqrt(sum((high_ms - predicted_ms) ** 2) OVER at_once) AS expected_high_ms
    FROM changed
    WINDOW at_once AS (PARTITION BY cell_id)
)
SELECT
    COLUMNS(_cell_name()),
    -- delegated (portable operators were rewritten so that XNNPACK executes them) or peers (an operator came as
    -- near to the roof of the device as the others of its kind in the cell).
    prediction.kind,
    -- Names of the operators, the one with the most time first.
    prediction.operators,
    -- Milliseconds of these operators in one run, as measured.
    prediction.operator_ms,
    -- Milliseconds of one run, as measured.
    prediction.cell_ms AS time_ms,
    -- Milliseconds of one run after the change.
    prediction.predicted_ms,
    -- Low end of its interval, see docs/numbers.md.
    prediction.low_ms,
    -- High end of its interval.
    prediction.high_ms,
    -- time_ms - predicted_ms.
    prediction.cell_ms - prediction.predicted_ms AS saved_ms,
    -- What it is made from: an entry of the table of advice with the processor and day of its measured pairs, or the
    -- number of peers.
    prediction.basis,
    -- First 16 digits of the SHA-256 of the rule with its tables.
    prediction.rule,
    -- Whether it is about the newest night of its series on the device: the program may be different today otherwise.
    is_newest,
    -- The next night of the series, if the operators changed as predicted; NULL otherwise, like all that follows.
    measured_night,
    -- Milliseconds of one run that night.
    measured_ms,
    -- Number of predictions about the cell that came true in that night at once.
    changed_at_once,
    -- Milliseconds that all of them predict together.
    expected_ms,
    -- Low end of their interval.
    expected_low_ms,
    -- High end of their interval.
    expected_high_ms,
    -- Whether measured_ms is in that interval.
    measured_ms BETWEEN expected_low_ms AND expected_high_ms AS held,
    -- Whether the runner changed in that night, too.
    runner_changed,
    -- Sweep of that night.
    measured_sweep_id,
    -- Cell of that night.
    measured_cell,
    sessions,
    runs,
    _cell.runner_source,
    COLUMNS(_cell_content())
FROM _cell
JOIN predicted AS prediction USING (cell_id)
LEFT JOIN together
    ON together.cell_id = prediction.cell_id
        AND together.kind = prediction.kind
        AND together.operators = prediction.operators;
