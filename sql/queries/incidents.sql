-- All incidents, open ones first, of these the newest first.
SELECT *, worst_model AS model
FROM incident
ORDER BY closed_on IS NOT NULL, state <> 'confirmed', onset DESC, kind, subject;
