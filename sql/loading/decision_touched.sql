-- The series that `new_decision` touches, and from which night on. An acceptance may be of a change that began later:
-- it counts from its day on. A revocation touches what the revoked decision does.
INSERT INTO touched_series BY NAME
SELECT series_id, min(least(changed.night, decided_at::DATE)) AS night
FROM series
JOIN (
    SELECT * FROM new_decision
    UNION ALL BY NAME
    SELECT * FROM decision
    WHERE decision_id IN (SELECT unnest([decision_id, revokes]) FROM new_decision)
) AS changed
    ON series.model = coalesce(changed.model, series.model)
        AND series.precision = coalesce(changed.precision, series.precision)
        AND series.variant = coalesce(changed.variant, series.variant)
WHERE kind NOT IN ('note', 'revocation')
GROUP BY series_id;
