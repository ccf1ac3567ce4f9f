-- The word for the shortest time beside the others: how many programs were measured, and whether one may be as short.
CREATE OR REPLACE MACRO _shortest_standing(measured, is_undecided) AS
    CASE
        WHEN measured = 1 THEN 'only one measured'
        WHEN is_undecided THEN 'shortest time'
        ELSE 'fastest'
    END;
