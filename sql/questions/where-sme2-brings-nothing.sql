-- Where does SME2 bring nothing: which models gain less than 2 % from it?
SELECT sweep_id, device, model, precision, threads, sessions_on, sessions_off, time_on_ms, time_off_ms, speedup, pair
FROM sme2_speedup
WHERE speedup < 1.02
    AND _has_times(emulated)
    AND _is_model(model, $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
ORDER BY speedup, sweep_id, device, model, precision, threads;
