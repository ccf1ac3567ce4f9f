-- Reads: _generation_phase, _reported_generation
-- How fast language models read a prompt and write text: each prefill beside the decoding at the KV depth that it
-- leaves, equal in everything else; a phase without the other has NULL there. The numbers of tokens are fixed by the
-- exported methods, so a text cannot end early.
CREATE OR REPLACE VIEW generation_speed AS
WITH
phase AS (
    SELECT
        *,
        prompt_tokens IS NOT NULL OR kv_depth = 0 AND steps IS NULL AS is_prefill,
        -- Decoding is beside a prompt that was read at once.
        CASE WHEN NOT is_prefill THEN kv_depth WHEN prompt_tokens IS NULL THEN tokens END AS prompt
    FROM _generation_phase
)
SELECT
    pair.sweep_id,
    shared.night,
    shared.device,
    shared.emulated,
    -- Name of the model, without the name of the method.
    shared.model,
    shared.precision,
    shared.variant,
    shared.threads,
    -- The prefill as llama-bench names it: pp512 reads a prompt of 512 tokens, pp512 @ d1024 reads 512 behind 1024, the
    -- last chunk of a prompt.
    'pp' || prefill.tokens
    || CASE WHEN prefill.kv_depth > 0 THEN ' @ d' || prefill.kv_depth ELSE '' END AS prefill_test,
    -- prefill_tokens over prefill_ms, per second; NULL on emulated devices.
    prefill.tokens_per_s AS prefill_tokens_per_s,
    -- Low end of the 95 % interval of prefill_tokens_per_s, from its sessions; NULL for fewer than 6 and on emulated
    -- devices.
    prefill.low_per_s AS prefill_low_per_s,
    -- High end of that interval.
    prefill.high_per_s AS prefill_high_per_s,
    -- Milliseconds of one prefill run: the time of Method::execute in its cell. For a prompt in chunks, the last one.
    prefill.time_ms AS prefill_ms,
    -- Milliseconds to read the prompt, after which the scores of the first new token are known: the time of
    -- Method::execute in its cell. Loading, tokenizing and sampling are not part of it. NULL for a prompt in chunks, of
    -- which only the last one is measured repeatedly: see load_to_first_token_ms.
    CASE WHEN prefill.prompt_tokens IS NULL THEN prefill.time_ms END AS time_to_first_token_ms,
    -- Milliseconds to load the program and to read the prompt for the first time, all its chunks, without a warm-up:
    -- median of the sessions. Starting the process and tokenizing are not part of it.
    prefill.loaded_ms AS load_to_first_token_ms,
    -- Tokens that one run of the prefill reads: the prompt, or its last chunk.
    prefill.tokens AS prefill_tokens,
    -- Tokens of the prompt: more than prefill_tokens if it is read in chunks.
    coalesce(prefill.prompt_tokens, prefill.tokens) AS prompt_tokens,
    -- Sessions behind the prefill; NULL without one.
    prefill.sessions AS prefill_sessions,
    -- The decoding as llama-bench names it: tg64 @ d512 writes 64 tokens behind 512. Choosing the likeliest token is
    -- part of it, unlike in llama-bench.
    'tg' || coalesce(decode.steps * decode.tokens, decode.tokens)
    || CASE WHEN decode.kv_depth > 0 THEN ' @ d' || decode.kv_depth ELSE '' END AS decode_test,
    -- decode_tokens over decode_ms, per second; NULL on emulated devices.
    decode.tokens_per_s AS decode_tokens_per_s,
    -- Low end of the 95 % interval of decode_tokens_per_s, from its sessions; NULL for fewer than 6 and on emulated
    -- devices.
    decode.low_per_s AS decode_low_per_s,
    -- High end of that interval.
    decode.high_per_s AS decode_high_per_s,
    -- Milliseconds of one decoding run: the time of Method::execute in its cell.
    decode.time_ms AS decode_ms,
    -- New tokens of one decoding run, usually 1.
    decode.tokens AS decode_tokens,
    -- Tokens in the KV cache before the first decoding run. With decode_steps each run writes at the next position;
    -- otherwise every run writes the same position, so all are at this depth.
    decode.kv_depth,
    -- Decoding runs of a session, each at the next position; NULL if every run is at kv_depth.
    decode.steps AS decode_steps,
    -- Sessions behind the decoding; NULL without one.
    decode.sessions AS decode_sessions,
    -- Gigabytes per second that decoding reads: decode_bytes_per_token times decode_tokens_per_s; NULL on emulated
    -- devices.
    decode.read_bytes * decode.tokens_per_s / decode.tokens / 1e9 AS decode_gb_per_s,
    -- Gigabytes per second at which the runner reads 256 MB of memory after each session of the decoding, on as many
    -- threads: median of the sessions. A condition of the device, no part of the cell; NULL on emulated devices and
    -- with a registered runner.
    CASE WHEN _has_times(shared.emulated) THEN decode.memory_bytes_per_s / 1e9 END AS memory_gb_per_s,
    -- decode_gb_per_s over memory_gb_per_s: how far decoding is from the limit of the memory, which is 1. It is above 1
    -- where weights stay in a cache.
    decode_gb_per_s / memory_gb_per_s AS decode_memory_share,
    -- Size of the .pte file, which all methods share.
    coalesce(prefill.pte_bytes, decode.pte_bytes) AS pte_bytes,
    -- Largest resident memory of the runner in sessions of both phases, KV cache included.
    greatest(prefill.peak_memory_bytes, decode.peak_memory_bytes) AS peak_memory_bytes,
    -- Of the model in eager PyTorch, with the weights of the recipe, on the text that the entry in the sweep file
    -- names: less is better; NULL without a text.
    coalesce(prefill.perplexity, decode.perplexity) AS perplexity,
    -- Multiply-accumulate operations of the prefill for each token of the prompt: all products of matrices, attention
    -- over the complete cache included; NULL for a dynamic shape.
    prefill.macs / prefill.tokens AS prefill_macs_per_token,
    -- Multiply-accumulate operations of decoding for each written token; NULL for a dynamic shape.
    decode.macs / decode.tokens AS decode_macs_per_token,
    -- Bytes that decoding reads for each written token, each once: weights as the .pte file stores them, rows of
    -- embeddings that are looked up, and the complete KV cache; not what operators pass to each other.
    decode.read_bytes / decode.tokens AS decode_bytes_per_token,
    -- ETDump: measured by the farm; PyTorchObserver: what the log of ExecuTorch's own runner of language models states,
    -- in full milliseconds, with tokenizing in the prefill and sampling in the decoding.
    'ETDump' AS source,
    -- Id of the cell of the prefill, see cell_overview; NULL without one.
    prefill.cell AS prefill_cell,
    -- Id of the cell of the decoding; NULL without one.
    decode.cell AS decode_cell,
    -- SHA-256 of the .pte file; NULL for a loaded log.
    shared.pte_sha256,
    -- SHA-256 over all files of the runner; NULL for a loaded log.
    shared.runner_sha256,
    -- Serial number of the device; NULL if unknown.
    shared.serial,
    -- Build of the device's operating system; NULL if unknown.
    shared.build
FROM (SELECT DISTINCT sweep_id, about AS shared, prompt FROM phase) AS pair
LEFT JOIN phase AS prefill
    ON prefill.sweep_id = pair.sweep_id
        AND prefill.about = shared
        AND prefill.prompt IS NOT DISTINCT FROM pair.prompt
        AND prefill.is_prefill
LEFT JOIN phase AS decode
    ON decode.sweep_id = pair.sweep_id
        AND decode.about = shared
        AND decode.prompt = pair.prompt
        AND NOT decode.is_prefill
UNION ALL BY NAME
FROM _reported_generation;
