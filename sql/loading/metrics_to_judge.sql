-- The other figures of the sessions behind each latency that was judged now. The name of a column is that of its metric
-- (tasks/judge/figures.py); a night without a figure has NULL there.
WITH
judged AS (
    SELECT series_id, device, night, cell, invalid_sessions
    FROM (
        FROM new_verdict
        UNION ALL BY NAME
        FROM series_verdict
    )
    JOIN series_to_judge USING (series_id, device)
    WHERE cell IS NOT NULL AND metric = 'latency' AND night >= first_night
),
measured AS (
    SELECT
        session_key, session_id, cell, load_ns, pte_bytes, planned_bytes, model.precision,
        coalesce(model_peak_memory_bytes, peak_memory_bytes) AS peak_bytes
    FROM _session
    JOIN model USING (model_id)
    WHERE cell IN (SELECT cell FROM judged) AND status = 'succeeded'
),
of_runs AS (
    SELECT
        session_key,
        max(execute_ns) FILTER (run_index = 0) AS first_ns,
        sum(portable_ns) FILTER (typical_run.run_id IS NOT NULL)
        / nullif(sum(execute_ns) FILTER (typical_run.run_id IS NOT NULL), 0) AS portable_share
    FROM run
    LEFT JOIN run_summary USING (run_id, session_key)
    LEFT JOIN typical_run USING (run_id, session_key)
    WHERE session_key IN (SELECT session_key FROM measured)
    GROUP BY session_key
),
of_outputs AS (
    -- int8 against fp32, all others against eager PyTorch in the same precision.
    SELECT
        session_key,
        CASE
            WHEN any_value(precision) IN ('int8_static', 'int8_dynamic') AND bool_or(reference = 'fp32')
                THEN max(max_abs_error) FILTER (reference = 'fp32')
            ELSE max(max_abs_error) FILTER (reference = 'eager')
        END AS max_abs_error
    FROM accuracy
    JOIN measured USING (session_key)
    GROUP BY session_key
),
of_cell AS (
    SELECT
        cell,
        list(load_ns ORDER BY session_id) FILTER (load_ns IS NOT NULL) AS load_ns,
        list(first_ns ORDER BY session_id) FILTER (first_ns IS NOT NULL) AS first_ns,
        list(peak_bytes ORDER BY session_id) FILTER (peak_bytes IS NOT NULL) AS peak_bytes,
        list(pte_bytes ORDER BY session_id) FILTER (pte_bytes IS NOT NULL) AS pte_bytes,
        list(planned_bytes ORDER BY session_id) FILTER (planned_bytes IS NOT NULL) AS planned_bytes,
        list(portable_share ORDER BY session_id) FILTER (portable_share IS NOT NULL) AS portable_share,
        list(max_abs_error ORDER BY session_id) FILTER (max_abs_error IS NOT NULL) AS max_abs_error
    FROM measured
    LEFT JOIN of_runs USING (session_key)
    LEFT JOIN of_outputs USING (session_key)
    GROUP BY cell
)
SELECT
    series_id,
    judged.device,
    judged.night,
    series.model,
    series.precision,
    series.variant,
    judged.cell,
    _content_hash(_content(pte_sha256, inputs_sha256, runner_sha256, launcher, executions, warmup_executions))
        AS content,
    invalid_sessions,
    inaccuracy,
    load_ns AS "load time",
    first_ns AS "first execution",
    peak_bytes AS "peak memory",
    pte_bytes AS ".pte size",
    planned_bytes AS "planned memory",
    portable_share AS "portable share",
    max_abs_error AS "output error"
FROM judged
JOIN of_cell ON of_cell.cell = judged.cell
JOIN series USING (series_id)
LEFT JOIN
    (SELECT cell, pte_sha256, inputs_sha256, runner_sha256, launcher, executions, warmup_executions FROM cell
    ) AS content
    ON content.cell = judged.cell
LEFT JOIN _inaccurate_cell ON _inaccurate_cell.cell = judged.cell
ORDER BY series_id, judged.device, judged.night;
