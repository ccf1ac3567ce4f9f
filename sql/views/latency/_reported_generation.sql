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
    -- Tokens of the prompt.
    reported_prompt_tokens AS prefill_tokens,
    -- Milliseconds until the first token was written, without loading.
    reported_first_token_ms AS time_to_first_token_ms,
    -- Milliseconds to tokenize and read the prompt.
    reported_prompt_ms AS prefill_ms,
    -- prefill_tokens over prefill_ms, per second.
    1000 * reported_prompt_tokens / nullif(reported_prompt_ms, 0) AS prefill_tokens_per_s,
    -- One log.
    1 AS prefill_sessions,
    -- Tokens of the prompt.
    reported_prompt_tokens AS prompt_tokens,
    -- Tokens of the prompt.
    reported_prompt_tokens AS kv_depth,
    -- Tokens of one decoding run.
    1 AS decode_tokens,
    -- Milliseconds for each written token, sampling included.
    reported_text_ms / reported_tokens AS decode_ms,
    -- Tokens written per second.
    1000 * reported_tokens / nullif(reported_text_ms, 0) AS decode_tokens_per_s,
    -- One log.
    1 AS decode_sessions,
    -- Cell of the log.
    cell AS prefill_cell,
    -- Cell of the log.
    cell AS decode_cell,
    -- The prefill as llama-bench names it.
    'pp' || reported_prompt_tokens AS prefill_test,
    -- Milliseconds to load the program and until the first token was written.
    load_ns / 1e6 + reported_first_token_ms AS load_to_first_token_ms,
    -- The decoding as llama-bench names it.
    'tg' || reported_tokens || ' @ d' || reported_prompt_tokens AS decode_test,
    -- Tokens that were written.
    reported_tokens AS decode_steps,
    -- PyTorchObserver.
    'PyTorchObserver' AS source
FROM _session
WHERE reported_tokens IS NOT NULL;
