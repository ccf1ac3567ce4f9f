-- Prefill and decoding of language models. An emulated device has counts and no times: its times mean nothing.
SELECT
    named.* EXCLUDE (place) REPLACE (generation_speed.model AS model),
    prefill_test,
    CASE WHEN without_times IS NULL THEN prefill_ms END AS prefill_ms,
    prefill_tokens_per_s,
    prefill_sessions,
    decode_test,
    CASE WHEN without_times IS NULL THEN decode_ms END AS decode_ms,
    decode_tokens_per_s,
    decode_sessions
FROM generation_speed
JOIN _named_cell AS named ON named.cell = coalesce(prefill_cell, decode_cell)
WHERE generation_speed.sweep_id = $sweep_id
ORDER BY
    generation_speed.model, named.without_times IS NOT NULL, named.device, named.threads, named.precision <> 'fp32',
    named.precision, named.variant, prefill_tokens, kv_depth, differs, named.cell;
