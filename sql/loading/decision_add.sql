-- Adds `new_decision`; a decision that is stored with another content is replaced.
DELETE FROM decision WHERE decision_id IN (SELECT decision_id FROM new_decision);
INSERT INTO decision BY NAME SELECT * FROM new_decision;
