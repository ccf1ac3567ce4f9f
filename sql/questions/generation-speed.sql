-- How fast do language models generate: time to first token, and tokens per second of prefill and decoding?
-- $model: language model
SELECT
    sweep_id,
    device,
    model,
    precision,
    variant,
    threads,
    prefill_tokens,
    time_to_first_token_ms,
    prefill_tokens_per_s,
    kv_depth,
    decode_ms,
    decode_tokens_per_s,
    prefill_sessions,
    decode_sessions,
    prefill_cell,
    decode_cell
FROM generation_speed
WHERE _has_times(emulated)
    AND ($model IS NULL OR model = $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND ($variant IS NULL OR variant = $variant)
    AND ($sweep IS NULL OR sweep_id = $sweep)
ORDER BY model, device, precision, threads, variant, prefill_tokens, kv_depth, sweep_id;
