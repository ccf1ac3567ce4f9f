-- Operators beside the roof of their device, those that could win most first; only cells that have a roof.
SELECT
    named.* EXCLUDE (place),
    operator,
    bound,
    time_ms,
    low_ms,
    high_ms,
    roof_ms,
    winnable_ms,
    share,
    gmac_per_s,
    gb_per_s,
    intensity,
    peak_gmac_per_s
FROM operator_roofline
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND roof_ms IS NOT NULL
ORDER BY place, winnable_ms DESC, time_ms DESC, operator;
