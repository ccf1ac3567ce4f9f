-- The medians of the sessions of both sides of each comparison without a result. Emulated devices have no times.
WITH
figure AS (
    SELECT
        comparison,
        arm,
        cell,
        session_id,
        started_at,
        median(execute_ns) AS median_ns
    FROM _session
    JOIN run USING (session_key)
    WHERE comparison IS NOT NULL
        AND comparison NOT IN (SELECT comparison FROM comparison_result)
        AND mode = 'timing'
        AND status = 'succeeded'
        AND NOT is_warmup
        AND _has_times(emulated)
    GROUP BY ALL
),
-- A device that got another OS between two starts of a comparison has two cells of one side: the newest counts.
side AS (
    SELECT comparison, arm, cell, list(median_ns ORDER BY session_id) AS figures_ns
    FROM figure
    GROUP BY comparison, arm, cell
    QUALIFY row_number() OVER (PARTITION BY comparison, arm ORDER BY max(started_at) DESC NULLS LAST, cell DESC) = 1
)
SELECT
    a.comparison,
    a.cell AS cell_a,
    b.cell AS cell_b,
    a.figures_ns AS figures_a_ns,
    b.figures_ns AS figures_b_ns
FROM side AS a
JOIN side AS b ON b.comparison = a.comparison AND a.arm = 'a' AND b.arm = 'b'
ORDER BY comparison;
