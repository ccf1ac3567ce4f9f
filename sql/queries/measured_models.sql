-- The names of all models that have sessions.
SELECT DISTINCT name
FROM model
ORDER BY name;
