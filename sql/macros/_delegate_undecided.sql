-- Why the time of a delegate may be as short as the shortest; NULL if both differ. `against` is the row of
-- delegate_result.
CREATE OR REPLACE MACRO _delegate_undecided(against) AS
    CASE
        WHEN against.sessions < 5 THEN 'too few sessions to tell (' || against.sessions || ', needs 5)'
        WHEN against.later_s IS NOT NULL THEN 'not interleaved'
        WHEN against.answer IS DISTINCT FROM 'different' THEN 'not told apart'
    END;
