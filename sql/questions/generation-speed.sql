-- How fast do language models generate: tokens per second of prefill (pp) and decoding (tg), as llama-bench names them?
-- $model: language model
WITH
phase AS (
    SELECT
        *,
        prefill_test AS test,
        prefill_ms AS ms,
        prefill_tokens_per_s AS tokens_per_s,
        prefill_low_per_s AS low,
        prefill_high_per_s AS high,
        prefill_sessions AS sessions,
        prefill_cell AS cell,
        prefill_macs_per_token AS macs_per_token,
        0 AS place
    FROM generation_speed
    WHERE prefill_cell IS NOT NULL
    UNION ALL BY NAME
    SELECT
        * REPLACE (NULL AS load_to_first_token_ms),
        decode_test AS test,
        decode_ms AS ms,
        decode_tokens_per_s AS tokens_per_s,
        decode_low_per_s AS low,
        decode_high_per_s AS high,
        decode_sessions AS sessions,
        decode_cell AS cell,
        decode_macs_per_token AS macs_per_token,
        1 AS place
    FROM generation_speed
    WHERE decode_cell IS NOT NULL
)
SELECT
    sweep_id,
    device,
    model,
    precision,
    variant,
    threads,
    test,
    tokens_per_s,
    low,
    high,
    sessions,
    ms,
    load_to_first_token_ms,
    pte_bytes,
    macs_per_token,
    CASE WHEN place = 1 THEN decode_bytes_per_token END AS bytes_per_token,
    CASE WHEN place = 1 THEN decode_gb_per_s END AS gb_per_s,
    CASE WHEN place = 1 THEN memory_gb_per_s END AS memory_gb_per_s,
    CASE WHEN place = 1 THEN decode_memory_share END AS memory_share,
    peak_memory_bytes,
    perplexity,
    source,
    cell
FROM phase
WHERE _has_times(emulated)
    AND ($model IS NULL OR model = $model)
    AND ($device IS NULL OR device = $device)
    AND ($precision IS NULL OR precision = $precision)
    AND ($variant IS NULL OR variant = $variant)
    -- What others than the farm measured is in no sweep that is newer than another.
    AND (_is_of_sweep($sweep, sweep_id, device, model, precision, threads) OR $sweep IS NULL AND source <> 'ETDump')
ORDER BY
    model,
    device,
    precision,
    threads,
    variant,
    place,
    coalesce(kv_depth * place, prefill_tokens),
    prompt_tokens,
    sweep_id;
