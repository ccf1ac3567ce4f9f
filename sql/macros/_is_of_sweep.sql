-- Whether a row is of the sweep that a question names; without one (NULL), of the newest sweep of the row's model (with
-- its versions and options), device, precision (`recipe`) and thread count, so that no night is mixed with another.
CREATE OR REPLACE MACRO _is_of_sweep(wanted, sweep_id, device, model, recipe, threads) AS
    CASE
        WHEN wanted IS NULL
            THEN (sweep_id, device, _without_case(model), recipe, coalesce(threads, 0))
                IN (
                    SELECT (newest.sweep_id, newest.device, newest.model, newest.precision, newest.threads)
                    FROM _newest_sweep AS newest
                )
        ELSE sweep_id = wanted
    END;
