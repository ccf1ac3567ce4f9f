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
    runner_source,
    resolution_ms,
    time_ms < resolution_ms AS below_resolution,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM _category_cell;

COMMENT ON VIEW category_share IS 'Where the time of Method::execute goes, by category: the sums of operator_time. The shares of a cell add up to 1.';
