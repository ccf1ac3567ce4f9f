-- What does each recipe cost and gain: size, tokens per second, perplexity, tokens that are equal to those of fp32?
-- $model: language model
WITH
written AS (
    SELECT
        cell AS decode_cell,
        -- In fp32 there is no other reference than eager PyTorch, which is in fp32, too.
        min(top1_agreement) FILTER (reference = 'fp32' OR precision = 'fp32' AND reference = 'eager') AS tokens_equal
    FROM session_accuracy
    GROUP BY ALL
)
SELECT
    sweep_id,
    device,
    model,
    variant,
    threads,
    precision,
    any_value(pte_bytes) / 1e6 AS pte_mb,
    arg_max(prefill_test, prefill_tokens) FILTER (prompt_tokens = prefill_tokens) AS pp,
    arg_max(prefill_tokens_per_s, prefill_tokens) FILTER (prompt_tokens = prefill_tokens) AS pp_tokens_per_s,
    arg_max(decode_test, kv_depth) AS tg,
    arg_max(decode_tokens_per_s, kv_depth) AS tg_tokens_per_s,
    max(perplexity) AS perplexity,
    min(tokens_equal) AS tokens_equal
FROM generation_speed
LEFT JOIN written USING (decode_cell)
WHERE _has_times(emulated)
    AND source = 'ETDump'
    AND ($model IS NULL OR model = $model)
    AND ($device IS NULL OR device = $device)
    AND ($variant IS NULL OR variant = $variant)
    AND ($sweep IS NULL OR sweep_id = $sweep)
GROUP BY sweep_id, device, model, variant, threads, precision, pte_sha256, runner_sha256, serial, build, emulated
ORDER BY sweep_id, device, model, variant, threads, pte_mb DESC;
