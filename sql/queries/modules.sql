-- Where the time goes in the modules of each model, per cell: those with at least $heavy_share of Method::execute, and
-- what belongs to no module.
SELECT
    named.* EXCLUDE (place),
    module_path,
    module_class,
    kind,
    own_ms,
    own_share,
    time_ms,
    share
FROM module_time
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND without_times IS NULL AND (share >= $heavy_share OR kind != 'module')
ORDER BY place, kind <> 'module', share DESC, module_path;
