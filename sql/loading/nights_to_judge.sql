-- The nights without a verdict of each series in `series_to_judge`, per device: the times of the sessions of the newest
-- cell with the five that a verdict needs (without one, of the one with the most), so that a short sweep at noon
-- replaces no night; the clock after each, how many sessions ran outside the limits, and how many failed and why.
WITH
timed AS (
    SELECT
        series_id,
        device,
        night,
        cell,
        session_id,
        session_key,
        sweep_id,
        repetition,
        started_at,
        status,
        reason_code,
        reason,
        executions,
        warmup_executions,
        _content(pte_sha256, inputs_sha256, runner_sha256, launcher, executions, warmup_executions) AS content
    FROM session_to_judge
    SEMI JOIN series_to_judge USING (series_id, device)
),
figure AS (
    SELECT
        timed.*,
        frequency_mhz,
        execute_ns / typical_runs AS time_ns,
        -- Events were removed before there was a middle half: its time and parts are means of all measured runs.
        typical_runs = executions - warmup_executions AND typical_runs > 1 AS is_of_all_runs
    FROM timed
    JOIN session_time USING (session_key)
    LEFT JOIN (SELECT session_key, frequency_mhz FROM device_conditions WHERE moment = 'after') USING (session_key)
),
newest AS (
    SELECT
        series_id,
        device,
        night,
        cell,
        content,
        list(time_ns ORDER BY session_id) AS figures_ns,
        list(frequency_mhz ORDER BY session_id) AS frequencies_mhz,
        bool_or(is_of_all_runs) AS is_of_all_runs
    FROM figure
    GROUP BY series_id, device, night, cell, content
    QUALIFY row_number() OVER (
            PARTITION BY series_id, device, night
            ORDER BY least(count(*), 5) DESC, max(started_at) DESC NULLS LAST, cell DESC
        ) = 1
),
-- The comparison with an earlier content that was measured on the same night.
same_night AS (
    SELECT DISTINCT ON (series_id, b.device, b.night, content)
        series_id,
        b.device,
        b.night,
        _content(a.pte_sha256, a.inputs_sha256, a.runner_sha256, a.launcher, a.executions, a.warmup_executions)
            AS content_a,
        _content(b.pte_sha256, b.inputs_sha256, b.runner_sha256, b.launcher, b.executions, b.warmup_executions)
            AS content,
        comparison_result.* EXCLUDE (cell_a, cell_b)
    FROM comparison_result
    JOIN cell AS a ON a.cell = cell_a
    JOIN cell AS b ON b.cell = cell_b
    JOIN (SELECT DISTINCT cell, series_id FROM _session) AS of_series ON of_series.cell = cell_b
    WHERE b.purpose = 'same_night'
    ORDER BY series_id, b.device, b.night, content, sessions_b DESC, comparison_result.comparison
)
SELECT
    series_id,
    device,
    night,
    model,
    precision,
    variant,
    cell,
    _content_hash(content) AS content,
    coalesce(figures_ns, []) AS latency,
    frequencies_mhz,
    coalesce(is_of_all_runs, FALSE) AS is_of_all_runs,
    invalid_sessions,
    failed_sessions,
    failures,
    failure,
    inaccuracy,
    same_night.* EXCLUDE (series_id, device, night, content, content_a),
    _content_hash(content_a) AS content_a
FROM (
    SELECT
        series_id,
        device,
        night,
        count(*) FILTER (status = 'invalid' AND reason_code IS DISTINCT FROM 'first_session') AS invalid_sessions,
        -- A session that failed again when the sweep was started again is one session.
        count(distinct(sweep_id, repetition)) FILTER (status = 'failed') AS failed_sessions,
        list_sort(list(DISTINCT coalesce(reason_code, 'unknown reason')) FILTER (status = 'failed')) AS failures,
        max_by(coalesce(reason, reason_code), row(started_at, session_id)) FILTER (status = 'failed') AS failure
    FROM timed
    GROUP BY series_id, device, night
) AS counted
LEFT JOIN newest USING (series_id, device, night)
LEFT JOIN same_night USING (series_id, device, night, content)
LEFT JOIN _inaccurate_cell USING (cell)
JOIN series USING (series_id)
ORDER BY series_id, device, night;
