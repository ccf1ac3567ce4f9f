-- Whole models beside the roof of their device; only cells that have a roof.
SELECT
    named.* EXCLUDE (place),
    model_roofline.time_ms,
    roof_ms,
    share,
    covered_share,
    winnable_ms,
    compute_bound_ms,
    memory_bound_ms,
    overhead_ms,
    clock_ratio,
    clock_differs,
    peak_gmac_per_s,
    [each.gb_per_s FOR each IN read_speeds] AS read_gb_per_s
FROM model_roofline
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id
ORDER BY place;
