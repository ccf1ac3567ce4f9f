-- Reads: _cell, session_cell, session
-- The newest sweep with a time of each model (all its cases, with the versions and options that they have), device,
-- precision and thread count: what a question is about that names no sweep.
CREATE OR REPLACE VIEW _newest_sweep AS
SELECT
    _cell.device,
    _without_case(_cell.model) AS model,
    _cell.precision,
    coalesce(_cell.threads, 0) AS threads,
    arg_max(_cell.sweep_id, (coalesce(_cell.night, '-infinity'::DATE), session.started_at)) AS sweep_id
FROM _cell
JOIN session_cell USING (cell_id)
JOIN session USING (session_key, sweep_id)
GROUP BY ALL;
