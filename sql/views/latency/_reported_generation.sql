-- Reads: _session
-- What the log of ExecuTorch's own runner of language models states, as rows of generation_speed.
CREATE OR REPLACE VIEW _reported_generation AS
SELECT
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    threads,
    reported_prompt_tokens AS prefill_tokens,
    reported_first_token_ms AS time_to_first_token_ms,
    reported_prompt_ms AS prefill_ms,
    1000 * reported_prompt_tokens / nullif(reported_prompt_ms, 0) AS prefill_tokens_per_s,
    1 AS prefill_sessions,
    reported_prompt_tokens AS prompt_tokens,
    reported_prompt_tokens AS kv_depth,
    1 AS decode_tokens,
    reported_text_ms / reported_tokens AS decode_ms,
    1000 * reported_tokens / nullif(reported_text_ms, 0) AS decode_tokens_per_s,
    1 AS decode_sessions,
    cell AS prefill_cell,
    cell AS decode_cell,
    'pp' || reported_prompt_tokens AS prefill_test,
    load_ns / 1e6 + reported_first_token_ms AS load_to_first_token_ms,
    'tg' || reported_tokens || ' @ d' || reported_prompt_tokens AS decode_test,
    reported_tokens AS decode_steps,
    'PyTorchObserver' AS source
FROM _session
WHERE reported_tokens IS NOT NULL;
