-- Whether the outputs of a cell are near enough to eager PyTorch, from a row of `cell_output`.
CREATE OR REPLACE MACRO _accuracy(compared_sessions, judged_sessions, inaccurate_sessions) AS
    CASE
        WHEN inaccurate_sessions > 0 THEN 'inaccurate'
        WHEN compared_sessions = 0 THEN 'not compared'
        WHEN judged_sessions = 0 THEN 'not judged'
        ELSE 'accurate'
    END;
