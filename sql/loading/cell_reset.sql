-- Take all sessions out of their cells, to make the cells again by another rule.
INSERT INTO touched_cell SELECT cell_id FROM cell;
DELETE FROM session_cell;
DELETE FROM cell;
