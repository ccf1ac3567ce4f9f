-- Where the time goes, by category. Emulated devices are left out: their times mean nothing.
SELECT named.* EXCLUDE (sweep_id, place), category, time_ms, category_share.share, resolution_ms
FROM category_share
JOIN _named_cell AS named USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND without_times IS NULL
ORDER BY place, category;
