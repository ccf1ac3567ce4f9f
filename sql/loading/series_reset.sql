-- Remove what was judged of the series in `touched_series` from their nights on. Nights without a verdict are judged at
-- the end of a load; if that is killed, by the next one.
DELETE FROM series_verdict USING touched_series AS touched
WHERE series_verdict.series_id = touched.series_id AND series_verdict.night >= touched.night;
DELETE FROM series_state USING touched_series AS touched
WHERE series_state.series_id = touched.series_id AND series_state.night >= touched.night;
-- Comparisons take the states of a device from the nights of the series before them.
DELETE FROM comparison_result
WHERE cell_b IN (
        SELECT cell
        FROM cell
        JOIN session_cell USING (cell_id)
        JOIN session USING (session_key)
        JOIN touched_series USING (series_id)
        WHERE cell.purpose IS NOT NULL AND cell.night >= touched_series.night
    );
