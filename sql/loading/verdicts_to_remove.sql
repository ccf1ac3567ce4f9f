-- Remove the verdicts and states of the series in `series_to_judge` from their first night to judge on.
DELETE FROM series_verdict USING series_to_judge AS judged
WHERE series_verdict.series_id = judged.series_id
    AND series_verdict.device = judged.device
    AND series_verdict.night >= first_night;
DELETE FROM series_state USING series_to_judge AS judged
WHERE series_state.series_id = judged.series_id
    AND series_state.device = judged.device
    AND series_state.night >= first_night;
