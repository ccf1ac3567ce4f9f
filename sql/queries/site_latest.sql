-- The newest sweep that measured what a page is about; NULL stands for any.
SELECT sweep_id
FROM cell
JOIN sweep USING (sweep_id)
WHERE ($model IS NULL OR model = $model) AND ($device IS NULL OR device = $device) AND sweep.night IS NOT NULL
    AND purpose IS NULL
ORDER BY sweep.night DESC, sweep_id DESC
LIMIT 1;
