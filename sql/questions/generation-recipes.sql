-- What does each recipe cost and gain: size, tokens per second, perplexity, tokens equal to those of fp32, accuracy?
-- $model: language model
WITH
written AS (
    SELECT
        cell AS decode_cell,
        -- In fp32 there is no other reference than eager PyTorch, which is in fp32, too.
        min(top1_agreement) FILTER (reference = 'fp32' OR precision = 'fp32' AND reference = 'eager') AS tokens_equal
    FROM session_accuracy
    GROUP BY ALL
),
of_prefill AS (
    SELECT sweep_id, cell AS prefill_cell, accuracy AS prefill_accuracy
    FROM cell_accuracy
),
of_decode AS (
    SELECT sweep_id, cell AS decode_cell, accuracy AS decode_accuracy, share AS portable_share
    FROM cell_accuracy
    LEFT JOIN portable_weight USING (sweep_id, cell)
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
    min(tokens_equal) AS tokens_equal,
    CASE
        WHEN bool_or('inaccurate' IN (prefill_accuracy, decode_accuracy)) THEN 'inaccurate'
        ELSE max(greatest(prefill_accuracy, decode_accuracy))
    END AS accuracy,
    arg_max(portable_share, kv_depth) AS tg_portable_share
FROM generation_speed
LEFT JOIN written USING (decode_cell)
LEFT JOIN of_prefill USING (sweep_id, prefill_cell)
LEFT JOIN of_decode USING (sweep_id, decode_cell)
WHERE _has_times(emulated)
    AND source = 'ETDump'
    AND ($model IS NULL OR model = $model)
    AND ($device IS NULL OR device = $device)
    AND ($variant IS NULL OR variant = $variant)
    AND _is_of_sweep($sweep, sweep_id, device, model, precision, threads)
GROUP BY sweep_id, device, model, variant, threads, precision, pte_sha256, runner_sha256, serial, build, emulated
ORDER BY sweep_id, device, model, variant, threads, pte_mb DESC;
