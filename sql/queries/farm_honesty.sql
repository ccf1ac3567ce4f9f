-- How far the verdicts of each week can be trusted, the newest week first.
FROM farm_honesty
ORDER BY week DESC;
