-- Where the time goes in the modules of each model, per cell: those with at least 5 % of Method::execute, and what
-- belongs to no module.
SELECT
    model,
    device,
    emulated IS TRUE AS emulated,
    precision,
    variant,
    threads,
    cell,
    differs,
    module_path,
    module_class,
    kind,
    own_ms,
    own_share,
    time_ms,
    share
FROM module_time
LEFT JOIN _differs USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND _has_times(emulated) AND (share >= 0.05 OR kind != 'module')
ORDER BY
    model, device, threads, precision <> 'fp32', precision, variant, differs, cell, kind <> 'module', share DESC, module_path;
