-- Reads: _operator_cell, _cell
-- The rows of category_share with the numbers of their cell and pair.
CREATE OR REPLACE VIEW _category_cell AS
WITH
category_total AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        category,
        sum(time_ms) AS time_ms,
        sum(share) AS share,
        sum(calls_per_run) AS calls_per_run,
        sum(resolution_ms) AS resolution_ms
    FROM _operator_cell
    GROUP BY cell_id, cell, sweep_id, category
)
SELECT
    _cell.*,
    category,
    time_ms,
    share,
    -- Calls in one run: the mean of the same runs as time_ms.
    calls_per_run,
    -- Milliseconds that the time may be off: 1 microsecond per call of a delegated operator, whose times are full
    -- microseconds, rounded down. An operator takes up to that much longer, and Unattributed that much less.
    CASE
        -- What the delegate's operators lost by rounding down is in the time that none of them accounts for.
        WHEN
            category = 'Unattributed'
            THEN sum(resolution_ms) OVER (PARTITION BY cell_id, _cell.cell, _cell.sweep_id) ELSE
            resolution_ms
    END AS resolution_ms
FROM category_total
JOIN _cell USING (cell_id, cell, sweep_id);
