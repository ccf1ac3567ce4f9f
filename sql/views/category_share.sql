CREATE OR REPLACE VIEW category_share AS
WITH
category_total AS (
    SELECT cell, category, sum(self_ns) AS self_ns
    FROM _operator_session
    GROUP BY cell, category
)
SELECT
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    category,
    self_ns / runs / 1e6 AS time_ms,
    self_ns / sum(self_ns) OVER (PARTITION BY cell) AS share,
    sessions,
    runs,
    runner_source
FROM category_total
JOIN _cell USING (cell);

COMMENT ON VIEW category_share IS 'Where the time of Method::execute goes, by category, in the measured runs of all sessions that are measured alike. Shares of such a cell add up to 1.';
COMMENT ON COLUMN category_share.sweep_id IS 'The sweep; `loose-<session_id>` for a loose ETDump.';
COMMENT ON COLUMN category_share.night IS 'Date of the sweep; NULL for a loose ETDump.';
COMMENT ON COLUMN category_share.device IS 'Name of the device in the inventory; `unknown` for a loose ETDump.';
COMMENT ON COLUMN category_share.emulated IS 'Whether the device is emulated, so that its times mean nothing; NULL for a loose ETDump.';
COMMENT ON COLUMN category_share.model IS 'Name of the model; the file''s name for a loose ETDump.';
COMMENT ON COLUMN category_share.precision IS 'fp32, fp16, int8_static or int8_dynamic; `unknown` for a loose ETDump.';
COMMENT ON COLUMN category_share.variant IS 'sme2_on or sme2_off; `unknown` for a loose ETDump.';
COMMENT ON COLUMN category_share.mode IS 'timing, profile or trace; only timing is ever latency.';
COMMENT ON COLUMN category_share.threads IS 'Threads asked for; NULL for a loose ETDump.';
COMMENT ON COLUMN category_share.category IS 'Convolution, GEMM, Data Movement, Elementwise or Other, by sql/seeds/operator_category.csv; Unattributed is the time of Method::execute that no operator accounts for.';
COMMENT ON COLUMN category_share.time_ms IS 'Milliseconds per run, on average.';
COMMENT ON COLUMN category_share.share IS 'Part of Method::execute, 0 to 1.';
COMMENT ON COLUMN category_share.sessions IS 'Sessions behind the row.';
COMMENT ON COLUMN category_share.runs IS 'Measured runs behind the row, warm-up ones left out.';
COMMENT ON COLUMN category_share.runner_source IS 'SHA-256 of the runner''s source, or of the runner where its source is not known: runners that differ in it are never mixed. NULL for a loose ETDump.';
