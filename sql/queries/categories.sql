-- Where the time goes, by category. Emulated devices are left out, since their times mean nothing, and cells of 0 ns.
SELECT named.* EXCLUDE (place), category, time_ms, category_share.share, resolution_ms
FROM category_share
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND without_times IS NULL AND category_share.share IS NOT NULL
ORDER BY place, category;
