-- Remove the nights that new sessions belong to; `touched` holds their series_id and night.
DELETE FROM series_night
WHERE (series_id, night) IN (SELECT (series_id, night) FROM touched);
