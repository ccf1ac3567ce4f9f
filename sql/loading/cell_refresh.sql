-- Compute the aggregates of the cells in `touched_cell` again; verdicts on their series are made again afterwards.
DELETE FROM series_verdict
WHERE series_id IN (
    SELECT series_id
    FROM session_cell
    JOIN session USING (session_key)
    WHERE cell_id IN (SELECT cell_id FROM touched_cell)
);
DELETE FROM comparison_result
WHERE comparison IN (SELECT comparison FROM cell WHERE cell_id IN (SELECT cell_id FROM touched_cell));
DELETE FROM cell_operator WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM series_night WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM cell
WHERE cell_id IN (SELECT cell_id FROM touched_cell) AND cell_id NOT IN (SELECT cell_id FROM session_cell);

-- A session's time of an operator is the mean of its runs; a cell's is the median of its sessions, in which a session
-- without the operator counts as 0, so that one hot session of five moves nothing.
INSERT INTO cell_operator BY NAME
WITH
member AS (
    SELECT
        cell_id,
        session_key,
        executions - warmup_executions AS runs,
        count(*) OVER (PARTITION BY cell_id) AS sessions
    FROM session_cell
    JOIN session USING (session_key)
    WHERE cell_id IN (SELECT cell_id FROM touched_cell)
        AND status = 'succeeded'
        AND mode = 'timing'
        AND executions > warmup_executions
),
session_operator AS (
    SELECT
        cell_id,
        session_key,
        kind,
        operator,
        layout,
        data_type,
        microkernel,
        any_value(sessions) AS sessions,
        sum(calls) / any_value(runs) AS calls_per_run,
        sum(self_ns) / any_value(runs) AS time_ns
    FROM member
    JOIN session_node USING (session_key)
    JOIN node USING (node_id)
    GROUP BY cell_id, session_key, kind, operator, layout, data_type, microkernel
),
typical AS (
    SELECT
        cell_id,
        kind,
        operator,
        layout,
        data_type,
        microkernel,
        list_median(list_resize(list(calls_per_run), any_value(sessions), 0)) AS calls_per_run,
        list_median(list_resize(list(time_ns), any_value(sessions), 0)) AS time_ns
    FROM session_operator
    GROUP BY cell_id, kind, operator, layout, data_type, microkernel
)
SELECT *, time_ns / nullif(sum(time_ns) OVER whole_cell, 0) AS share
FROM typical
-- Adding up in one order makes the same share of the same bundles each time.
WINDOW whole_cell AS (
    PARTITION BY cell_id
    ORDER BY time_ns, kind, operator, layout, data_type, microkernel
    ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING
)
ORDER BY cell_id, time_ns DESC;

-- Figures of a night come from sessions: executions of one process are not independent of each other.
INSERT INTO series_night BY NAME
WITH
measured AS (
    SELECT
        series_id,
        night,
        cell_id,
        session_key,
        any_value(started_at) AS started_at,
        median(execute_ns) AS median_ns
    FROM session_cell
    JOIN session USING (session_key)
    JOIN sweep USING (sweep_id)
    JOIN run USING (session_key)
    WHERE cell_id IN (SELECT cell_id FROM touched_cell)
        AND status = 'succeeded'
        AND mode = 'timing'
        AND purpose IS NULL
        AND NOT is_warmup
        AND series_id IS NOT NULL
        AND night IS NOT NULL
    GROUP BY series_id, night, cell_id, session_key
)
SELECT
    series_id,
    night,
    cell_id,
    count(*) AS sessions,
    median(median_ns) AS median_ns,
    mad(median_ns) AS mad_ns,
    min(median_ns) AS min_ns,
    max(median_ns) AS max_ns,
    max(started_at) AS last_started_at
FROM measured
GROUP BY series_id, night, cell_id;
