-- The times of the sessions of both sides of each comparison without a result, and of each cell of the series of side B
-- up to that night, which show the states of the device. Emulated devices have no times.
WITH
figure AS (
    SELECT
        comparison,
        arm,
        cell,
        session_id,
        started_at,
        execute_ns / typical_runs AS time_ns
    FROM _session
    JOIN session_time USING (session_key)
    WHERE comparison IS NOT NULL
        AND comparison NOT IN (SELECT comparison FROM comparison_result)
        AND _has_times(emulated)
),
-- A device that got another OS between two starts of a comparison has two cells of one side: the newest counts.
side AS (
    SELECT comparison, arm, cell, list(time_ns ORDER BY session_id) AS figures_ns
    FROM figure
    GROUP BY comparison, arm, cell
    QUALIFY row_number() OVER (PARTITION BY comparison, arm ORDER BY max(started_at) DESC NULLS LAST, cell DESC) = 1
),
earlier AS (
    SELECT cell, list(figures_ns ORDER BY night, cell_of_night) AS cells_ns
    FROM (
        SELECT
            measured.cell,
            of_series.night,
            of_series.cell AS cell_of_night,
            list(execute_ns / typical_runs ORDER BY session_id) AS figures_ns
        FROM (
            SELECT DISTINCT cell, series_id, device, night
            FROM _session
            WHERE cell IN (SELECT cell FROM side WHERE arm = 'b')
        ) AS measured
        JOIN _session AS of_series USING (series_id, device)
        JOIN session_time USING (session_key)
        WHERE of_series.mode = 'timing' AND purpose IS NULL AND of_series.night <= measured.night
        GROUP BY ALL
    )
    GROUP BY cell
)
SELECT
    a.comparison,
    a.cell AS cell_a,
    b.cell AS cell_b,
    a.figures_ns AS figures_a_ns,
    b.figures_ns AS figures_b_ns,
    coalesce(cells_ns, []) AS cells_ns
FROM side AS a
JOIN side AS b ON b.comparison = a.comparison AND a.arm = 'a' AND b.arm = 'b'
LEFT JOIN earlier ON earlier.cell = b.cell
ORDER BY comparison;
