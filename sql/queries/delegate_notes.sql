-- What to know about the times of the operators that delegates reported, by model.
SELECT DISTINCT model, precision, delegate_note AS note
FROM session_overview
WHERE sweep_id = $sweep_id AND mode = 'timing' AND status = 'succeeded' AND delegate_note IS NOT NULL
ORDER BY model, precision, note;
