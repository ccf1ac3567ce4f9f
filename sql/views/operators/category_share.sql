CREATE OR REPLACE VIEW category_share AS
SELECT
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    category,
    time_ms,
    share,
    sessions,
    runs,
    runner_source
FROM _category_cell;

COMMENT ON VIEW category_share IS 'Where the time of Method::execute goes, by category, in all measured runs of a cell. The shares of a cell add up to 1.';
