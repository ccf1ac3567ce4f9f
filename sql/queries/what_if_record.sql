-- How many predictions of the farm came true up to a night, and how many of their times were in the interval; no row
-- without any.
SELECT count(*) AS predictions, count_if(held) AS held
FROM what_if
WHERE measured_ms IS NOT NULL AND ($night IS NULL OR measured_night <= $night)
HAVING count(*) > 0;
