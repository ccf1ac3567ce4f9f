-- Reads: _category_cell
-- Where the time of Method::execute goes, by category: the sums of operator_time. The shares of a cell add up to 1.
CREATE OR REPLACE VIEW category_share AS
SELECT
    COLUMNS(_cell_name()),
    category,
    time_ms,
    share,
    resolution_ms,
    -- Whether time_ms is less than resolution_ms: ignore it then.
    time_ms < resolution_ms AS below_resolution,
    sessions,
    runs,
    runner_source,
    COLUMNS(_cell_content())
FROM _category_cell;
