-- Reads: session, session_time, session_cell, model, _cell, cell_interval, run
-- Each cell of a language model: a prefill or decoding, its time and speed.
CREATE OR REPLACE VIEW _generation_phase AS
WITH
measured AS (
    SELECT
        cell_id,
        sweep_id,
        tokens,
        coalesce(kv_depth, 0) AS kv_depth,
        steps,
        prompt_tokens,
        any_value(pte_bytes) AS pte_bytes,
        any_value(perplexity) AS perplexity,
        any_value(macs) AS macs,
        any_value(read_bytes) AS read_bytes,
        median(memory_read_bytes_per_s) AS memory_bytes_per_s,
        -- Of a prompt in chunks, the set-up reads those before the last one.
        median(load_ns / 1e6 + first_ms + CASE WHEN prompt_tokens IS NULL THEN 0 ELSE setup_ns / 1e6 END) AS loaded_ms,
        max(peak_memory_bytes) AS peak_memory_bytes
    FROM session
    JOIN session_time USING (session_key)
    JOIN session_cell USING (session_key)
    JOIN model USING (model_id)
    LEFT JOIN (SELECT session_key, execute_ns / 1e6 AS first_ms FROM run WHERE run_index = 0) USING (session_key)
    WHERE tokens > 0
    GROUP BY ALL
)
SELECT
    sweep_id,
    -- Everything that the cells of both phases share: as a struct, because two NULLs inside it are equal.
    -- The executions are not among it: where each writes the next token, there are as many as tokens.
    {
        night: night,
        device: device,
        emulated: emulated,
        model: _without_case(model),
        precision: precision,
        variant: variant,
        threads: threads,
        seed: seed,
        pte_sha256: pte_sha256,
        runner_sha256: runner_sha256,
        serial: serial,
        build: build
    } AS about,
    cell,
    tokens,
    kv_depth,
    steps,
    prompt_tokens,
    pte_bytes,
    perplexity,
    macs,
    read_bytes,
    -- Bytes per second at which the memory is read: median of the sessions.
    memory_bytes_per_s,
    sessions,
    cell_ms AS time_ms,
    -- Milliseconds to load the program and to read the prompt for the first time: median of the sessions.
    loaded_ms,
    peak_memory_bytes,
    -- tokens over time_ms, per second; NULL on emulated devices.
    CASE WHEN _has_times(emulated) THEN 1000 * tokens / nullif(time_ms, 0) END AS tokens_per_s,
    -- Low end of the 95 % interval of tokens_per_s: the slower a session, the longer its time.
    CASE WHEN _has_times(emulated) THEN 1000 * tokens / high_ms END AS low_per_s,
    -- High end of the 95 % interval of tokens_per_s.
    CASE WHEN _has_times(emulated) THEN 1000 * tokens / low_ms END AS high_per_s
FROM measured
JOIN _cell USING (cell_id, sweep_id)
LEFT JOIN cell_interval USING (cell_id);
