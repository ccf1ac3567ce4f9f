-- Compute the aggregates of the cells in `touched_cell` again; series_reset then removes what was judged of their
-- series.
INSERT INTO touched_series BY NAME
SELECT series_id, min(cell.night) AS night
FROM session
JOIN session_cell USING (session_key)
JOIN cell USING (cell_id)
-- Kernels that a session without times found decide the SME coverage of the cells of its content, see sme2_coverage.
WHERE subject IN (SELECT subject FROM cell SEMI JOIN touched_cell USING (cell_id))
    -- A result may supersede a failure in another series, see failed_session.
    OR status = 'failed' AND session.sweep_id IN (SELECT sweep_id FROM cell SEMI JOIN touched_cell USING (cell_id))
GROUP BY series_id;
DELETE FROM comparison_result
WHERE comparison IN (SELECT comparison FROM cell WHERE cell_id IN (SELECT cell_id FROM touched_cell));
DELETE FROM cell_time WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM cell_node WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM cell_operator WHERE cell_id IN (SELECT cell_id FROM touched_cell);
-- All of the sweep: another cell may be the fastest now.
DELETE FROM delegate_result
WHERE sweep_id IN (SELECT sweep_id FROM cell WHERE cell_id IN (SELECT cell_id FROM touched_cell));
DELETE FROM cell_interval WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM prediction WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM cell_made_from WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM cell_output WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM series_night WHERE cell_id IN (SELECT cell_id FROM touched_cell);
DELETE FROM cell
WHERE cell_id IN (SELECT cell_id FROM touched_cell) AND cell_id NOT IN (SELECT cell_id FROM session_cell);

-- The one rule about the time of a cell: the mean of the middle half of its sessions by their time. Each part of it is
-- the mean of the same sessions, so that parts add up. One hot session of five is left out; it moves the time only by
-- which of the others are the middle ones.
DELETE FROM session_time
WHERE session_key IN (SELECT session_key FROM session_cell WHERE cell_id IN (SELECT cell_id FROM touched_cell));

INSERT INTO session_time BY NAME
WITH
timed AS (
    SELECT cell_id, session_key, session_id, count(*) AS typical_runs, sum(execute_ns) AS execute_ns
    FROM session_cell
    JOIN session USING (session_key)
    JOIN typical_run USING (session_key)
    JOIN run USING (run_id, session_key)
    WHERE cell_id IN (SELECT cell_id FROM touched_cell) AND status = 'succeeded' AND mode = 'timing'
    GROUP BY cell_id, session_key, session_id
)
SELECT
    session_key,
    typical_runs,
    execute_ns,
    _in_middle_half(
        row_number() OVER (PARTITION BY cell_id ORDER BY execute_ns / typical_runs, session_id),
        count(*) OVER (PARTITION BY cell_id)
    ) AS is_typical
FROM timed;

INSERT INTO cell_time BY NAME
SELECT
    cell_id,
    count(is_typical) AS sessions,
    sum(typical_runs) FILTER (is_typical) AS typical_runs,
    sum(execute_ns) FILTER (is_typical) AS execute_ns,
    max(source_map_id) AS source_map_id
FROM session_cell
JOIN session USING (session_key)
LEFT JOIN session_time USING (session_key)
WHERE cell_id IN (SELECT cell_id FROM touched_cell)
GROUP BY cell_id
HAVING count(is_typical) > 0;

INSERT INTO cell_node BY NAME
SELECT cell_id, node_id, sum(calls) AS calls, sum(self_ns) AS self_ns
FROM session_cell
JOIN session_time USING (session_key)
JOIN session_node USING (session_key)
WHERE cell_id IN (SELECT cell_id FROM touched_cell) AND is_typical
GROUP BY cell_id, node_id
ORDER BY cell_id, node_id;

INSERT INTO cell_operator BY NAME
SELECT
    cell_id,
    kind,
    operator,
    layout,
    data_type,
    microkernel,
    sum(calls) / any_value(typical_runs) AS calls_per_run,
    sum(self_ns) / any_value(typical_runs) AS time_ns,
    sum(self_ns) / nullif(sum(sum(self_ns)) OVER (PARTITION BY cell_id), 0) AS share
FROM cell_node
JOIN cell_time USING (cell_id)
JOIN node USING (node_id)
WHERE cell_id IN (SELECT cell_id FROM touched_cell)
GROUP BY cell_id, kind, operator, layout, data_type, microkernel
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
        median(run.execute_ns) AS median_ns
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
    sum(execute_ns) FILTER (is_typical) / sum(typical_runs) FILTER (is_typical) AS time_ns,
    median(median_ns) AS median_ns,
    mad(median_ns) AS mad_ns,
    min(median_ns) AS min_ns,
    max(median_ns) AS max_ns,
    max(started_at) AS last_started_at
FROM measured
JOIN session_time USING (session_key)
GROUP BY series_id, night, cell_id;

-- The sources of a cell and the state of its device. Neither decides what may be pooled. Every cell has a row.
INSERT INTO cell_made_from BY NAME
WITH
succeeded AS (
    SELECT
        cell_id,
        max_by(model.versions, started_at) AS versions,
        max_by(model_source_sha256, started_at) AS source_sha256,
        max_by(model.converted_layers || ' of ' || layer_count, started_at) AS converted_layers,
        max_by(_commit(source_commit, source_author, source_is_dirty), started_at) AS source_commit,
        median(temperature_c) AS temperature_c,
        string_agg(DISTINCT governor, ', ' ORDER BY governor) AS governor,
        CASE WHEN bool_and(charging) THEN 'charging' WHEN NOT bool_or(charging) THEN 'not charging' END AS battery,
        median(clock_mhz) AS clock_mhz
    FROM session_cell
    JOIN session USING (session_key)
    JOIN model USING (model_id)
    LEFT JOIN (SELECT * FROM device_conditions WHERE moment = 'before') USING (session_key)
    LEFT JOIN (
        SELECT session_key, frequency_mhz AS clock_mhz FROM device_conditions WHERE moment = 'after'
    ) USING (session_key)
    WHERE cell_id IN (SELECT cell_id FROM touched_cell) AND status = 'succeeded'
    GROUP BY cell_id
)
FROM (SELECT cell_id FROM cell WHERE cell_id IN (SELECT cell_id FROM touched_cell))
LEFT JOIN succeeded USING (cell_id);

-- How far the outputs of a cell are from their references: the worst figure of all outputs and sessions that succeeded.
INSERT INTO cell_output BY NAME
WITH
member AS (
    SELECT cell_id, session_key
    FROM session_cell
    JOIN session USING (session_key)
    WHERE cell_id IN (SELECT cell_id FROM touched_cell) AND status = 'succeeded'
),
by_session AS (
    SELECT
        session_key,
        count(is_inaccurate) > 0 AS is_judged,
        coalesce(bool_or(is_inaccurate), FALSE) AS is_inaccurate,
        max(max_abs_error) FILTER (reference = 'eager') AS max_abs_error,
        min(snr_db) FILTER (reference = 'eager') AS snr_db,
        min(snr_db) FILTER (reference = 'fp32') AS snr_fp32_db,
        max(min_snr_db) FILTER (reference = 'eager') AS min_snr_db,
        max(min_snr_db) FILTER (reference = 'fp32') AS min_snr_fp32_db,
        min(snr_db) FILTER (reference = 'host') AS snr_host_db,
        max(min_snr_db) FILTER (reference = 'host') AS min_snr_host_db,
        max(nonfinite_mismatches) FILTER (is_inaccurate) AS nonfinite_mismatches,
        max(cause) AS cause,
        max(below) AS samples_below,
        max(samples) AS samples,
        min(snr_db) FILTER (reference = 'samples') AS snr_samples_db,
        max(min_snr_db) FILTER (reference = 'samples') AS min_snr_samples_db,
        max(worst) AS worst_sample,
        min(score) AS score,
        max(min_score) AS min_score,
        max(min_top1) AS min_top1,
        min(top1_agreement) FILTER (min_top1 IS NOT NULL) AS judged_top1,
        min(cosine) AS cosine,
        min(top1_agreement) FILTER (reference != 'samples') AS top1_agreement,
        min(first_difference) FILTER (is_inaccurate) AS first_difference
    FROM accuracy
    JOIN member USING (session_key)
    GROUP BY session_key
)
SELECT
    cell_id,
    count(*) AS sessions,
    count(by_session.session_key) AS compared_sessions,
    count(*) FILTER (is_judged) AS judged_sessions,
    count(*) FILTER (is_inaccurate) AS inaccurate_sessions,
    max(max_abs_error) AS max_abs_error,
    min(snr_db) AS snr_db,
    max(min_snr_db) AS min_snr_db,
    min(snr_fp32_db) AS snr_fp32_db,
    max(min_snr_fp32_db) AS min_snr_fp32_db,
    min(cosine) AS cosine,
    min(top1_agreement) AS top1_agreement,
    min(snr_host_db) AS snr_host_db,
    max(min_snr_host_db) AS min_snr_host_db,
    max(nonfinite_mismatches) AS nonfinite_mismatches,
    max(cause) AS cause,
    max(samples_below) AS samples_below,
    max(samples) AS samples,
    min(snr_samples_db) AS snr_samples_db,
    max(min_snr_samples_db) AS min_snr_samples_db,
    max(worst_sample) AS worst_sample,
    min(score) AS score,
    max(min_score) AS min_score,
    max(min_top1) AS min_top1,
    min(judged_top1) AS judged_top1,
    min(first_difference) AS first_difference
FROM member
LEFT JOIN by_session USING (session_key)
GROUP BY cell_id;
