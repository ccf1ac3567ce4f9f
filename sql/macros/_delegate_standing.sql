-- What the time of a delegate means beside that of the shortest, see delegate_comparison. `shortest` is a word for the
-- one that has it and NULL for others, `against` the row of delegate_result of any other.
CREATE OR REPLACE MACRO _delegate_standing(outcome, emulated, accuracy, same_as, shortest, against) AS
    CASE
        WHEN outcome <> 'measured' THEN outcome
        WHEN emulated THEN 'emulated'
        WHEN accuracy = 'inaccurate' THEN 'inaccurate'
        WHEN same_as IS NOT NULL THEN 'same as ' || same_as
        WHEN shortest IS NOT NULL THEN shortest
        ELSE coalesce(_delegate_undecided(against), 'slower')
    END;
