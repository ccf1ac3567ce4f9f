CREATE OR REPLACE VIEW generation_speed AS
WITH
phase AS (
    SELECT
        -- Everything that the cells of both phases share: two NULLs inside it are equal.
        {
            sweep_id: session.sweep_id,
            night: session.night,
            device: session.device,
            emulated: session.emulated,
            model: regexp_replace(session.model, '@[^@]*$', ''),
            precision: session.precision,
            variant: session.variant,
            threads: session.threads,
            seed: session.seed,
            pte_sha256: session.pte_sha256,
            runner_sha256: session.runner_sha256,
            serial: session.serial,
            build: session.build,
            executions: session.executions,
            warmup_executions: session.warmup_executions
        } AS about,
        session.cell,
        tokens,
        coalesce(kv_depth, 0) AS kv_depth,
        any_value(_cell.sessions) AS sessions,
        any_value(cell_ms) AS time_ms
    FROM session_latency
    JOIN _session AS session USING (session_id, sweep_id)
    JOIN model USING (model_id)
    JOIN _cell USING (cell_id, sweep_id)
    WHERE tokens > 0
    GROUP BY ALL
),
prefill AS (
    SELECT about, tokens AS prompt, cell, tokens, sessions, time_ms
    FROM phase
    WHERE kv_depth = 0
),
decode AS (
    SELECT about, kv_depth AS prompt, cell, tokens, kv_depth, sessions, time_ms
    FROM phase
    WHERE kv_depth > 0
)
SELECT
    about.sweep_id,
    about.night,
    about.device,
    about.emulated,
    about.model,
    about.precision,
    about.variant,
    about.threads,
    prefill.tokens AS prefill_tokens,
    prefill.time_ms AS time_to_first_token_ms,
    CASE WHEN _has_times(about.emulated) THEN 1000 * prefill.tokens / nullif(prefill.time_ms, 0) END AS prefill_tokens_per_s,
    prefill.sessions AS prefill_sessions,
    decode.kv_depth,
    decode.tokens AS decode_tokens,
    decode.time_ms AS decode_ms,
    CASE WHEN _has_times(about.emulated) THEN 1000 * decode.tokens / nullif(decode.time_ms, 0) END AS decode_tokens_per_s,
    decode.sessions AS decode_sessions,
    prefill.cell AS prefill_cell,
    decode.cell AS decode_cell,
    about.pte_sha256,
    about.runner_sha256,
    about.serial,
    about.build
FROM prefill
FULL JOIN decode USING (about, prompt);

COMMENT ON VIEW generation_speed IS 'How fast language models read a prompt and write text: each prefill beside the decoding at the KV depth that it leaves, equal in everything else; a phase without the other has NULL there. The numbers of tokens are fixed by the exported methods, so a text cannot end early.';
COMMENT ON COLUMN generation_speed.model IS 'Name of the model, without the name of the method.';
COMMENT ON COLUMN generation_speed.prefill_tokens IS 'Tokens of the prompt, read in one run.';
COMMENT ON COLUMN generation_speed.time_to_first_token_ms IS 'Milliseconds to read the prompt, after which the scores of the first new token are known: the time of Method::execute in its cell. Loading, tokenizing and sampling are not part of it.';
COMMENT ON COLUMN generation_speed.prefill_tokens_per_s IS 'prefill_tokens over time_to_first_token_ms, per second; NULL on emulated devices.';
COMMENT ON COLUMN generation_speed.prefill_sessions IS 'Sessions behind the prefill; NULL without one.';
COMMENT ON COLUMN generation_speed.kv_depth IS 'Tokens in the KV cache before each decoding run. Every run writes the same position, so all are at this depth.';
COMMENT ON COLUMN generation_speed.decode_tokens IS 'New tokens of one decoding run, usually 1.';
COMMENT ON COLUMN generation_speed.decode_ms IS 'Milliseconds of one decoding run: the time of Method::execute in its cell.';
COMMENT ON COLUMN generation_speed.decode_tokens_per_s IS 'decode_tokens over decode_ms, per second; NULL on emulated devices.';
COMMENT ON COLUMN generation_speed.decode_sessions IS 'Sessions behind the decoding; NULL without one.';
COMMENT ON COLUMN generation_speed.prefill_cell IS 'Id of the cell of the prefill, see cell_overview; NULL without one.';
COMMENT ON COLUMN generation_speed.decode_cell IS 'Id of the cell of the decoding; NULL without one.';
