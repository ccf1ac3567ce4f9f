-- What differs between both sides of a comparison.
SELECT changed
FROM comparison
WHERE comparison = $comparison;
