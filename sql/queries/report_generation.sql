-- Prefill and decoding of language models. An emulated device has counts and no times: its times mean nothing.
SELECT
    model,
    device,
    emulated IS TRUE AS emulated,
    precision,
    variant,
    threads,
    coalesce(prefill_cell, decode_cell) AS cell,
    differs,
    prefill_tokens,
    CASE WHEN _has_times(emulated) THEN time_to_first_token_ms END AS time_to_first_token_ms,
    prefill_tokens_per_s,
    prefill_sessions,
    kv_depth,
    CASE WHEN _has_times(emulated) THEN decode_ms END AS decode_ms,
    decode_tokens_per_s,
    decode_sessions
FROM generation_speed
LEFT JOIN (SELECT cell, differs FROM _differs WHERE sweep_id = $sweep_id) AS named
    ON coalesce(prefill_cell, decode_cell) = named.cell
WHERE sweep_id = $sweep_id
ORDER BY model, emulated, device, threads, precision <> 'fp32', precision, variant, prefill_tokens, kv_depth, differs, cell;
