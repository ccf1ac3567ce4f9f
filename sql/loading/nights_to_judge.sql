-- The nights of each series that has no verdicts, per device: the medians of the sessions of the newest cell, and how
-- many sessions ran outside the limits. Emulated devices are never judged.
WITH
timed AS (
    SELECT
        session.series_id,
        cell.device,
        cell.night,
        cell,
        session_id,
        session_key,
        started_at,
        status,
        reason_code,
        coalesce(pte_sha256, '') || ' ' || coalesce(runner_sha256, '') AS content
    FROM session
    JOIN session_cell USING (session_key)
    JOIN cell USING (cell_id)
    WHERE session.mode = 'timing'
        AND cell.night IS NOT NULL
        AND _has_times(emulated)
        AND session.series_id IS NOT NULL
        AND session.series_id NOT IN (SELECT series_id FROM series_verdict)
),
figure AS (
    SELECT timed.*, median(execute_ns) AS median_ns
    FROM timed
    JOIN run USING (session_key)
    WHERE status = 'succeeded' AND NOT is_warmup
    GROUP BY ALL
),
newest AS (
    SELECT series_id, device, night, cell, content, list(median_ns ORDER BY session_id) AS figures_ns
    FROM figure
    GROUP BY series_id, device, night, cell, content
    QUALIFY row_number() OVER (
        PARTITION BY series_id, device, night ORDER BY max(started_at) DESC NULLS LAST, cell DESC
    ) = 1
)
SELECT
    series_id,
    device,
    night,
    model,
    precision,
    variant,
    cell,
    coalesce(content, '') AS content,
    coalesce(figures_ns, []) AS figures_ns,
    invalid_sessions
FROM (
    SELECT
        series_id,
        device,
        night,
        count(*) FILTER (status = 'invalid' AND reason_code IS DISTINCT FROM 'first_session') AS invalid_sessions
    FROM timed
    GROUP BY series_id, device, night
)
LEFT JOIN newest USING (series_id, device, night)
JOIN series USING (series_id)
ORDER BY series_id, device, night;
