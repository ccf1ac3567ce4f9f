CREATE OR REPLACE VIEW comparison AS
WITH
-- Accuracy and facts are looked up once for both sides: each look reads the cells of the whole farm.
compared AS (
    SELECT DISTINCT unnest([cell_a, cell_b]) AS cell FROM comparison_result
),
accuracy AS (
    SELECT cell, sweep_id, accuracy FROM cell_accuracy SEMI JOIN compared USING (cell)
),
facts AS MATERIALIZED (
    SELECT cell, facts FROM _cell_facts SEMI JOIN compared USING (cell)
)
SELECT
    b.night,
    b.device,
    b.purpose,
    a.model AS model_a,
    b.model AS model_b,
    a.precision AS precision_a,
    b.precision AS precision_b,
    b.variant,
    b.threads,
    sessions_a,
    sessions_b,
    time_a / 1e6 AS time_a_ms,
    time_b / 1e6 AS time_b_ms,
    ratio,
    low,
    high,
    CASE
        WHEN 'inaccurate' IN (accuracy_a.accuracy, accuracy_b.accuracy) THEN 'inaccurate' ELSE answer
    END AS answer,
    more_sessions,
    superiority,
    _changes(facts_a.facts, facts_b.facts) AS changed,
    a.pte_sha256 AS pte_sha256_a,
    b.pte_sha256 AS pte_sha256_b,
    a.runner_sha256 AS runner_sha256_a,
    b.runner_sha256 AS runner_sha256_b,
    b.sweep_id,
    comparison_result.comparison,
    cell_a,
    cell_b,
    accuracy_a.accuracy AS accuracy_a,
    accuracy_b.accuracy AS accuracy_b,
    note
FROM comparison_result
JOIN cell AS a ON a.cell = cell_a
JOIN cell AS b ON b.cell = cell_b
LEFT JOIN accuracy AS accuracy_a ON accuracy_a.cell = cell_a AND accuracy_a.sweep_id = a.sweep_id
LEFT JOIN accuracy AS accuracy_b ON accuracy_b.cell = cell_b AND accuracy_b.sweep_id = b.sweep_id
JOIN facts AS facts_a ON facts_a.cell = cell_a
JOIN facts AS facts_b ON facts_b.cell = cell_b;

COMMENT ON VIEW comparison IS 'What was measured alternately on one device: side B compared with side A. Drift and heat of the device affect both, so the ratio is about the two contents.';
COMMENT ON COLUMN comparison.purpose IS 'same_night: a suspected night, with model and runner of the last good night as A; comparison: `etfarm compare` of two files; bisection: `etfarm bisect`; noise: twice the same content.';
COMMENT ON COLUMN comparison.model_a IS 'Model of side A.';
COMMENT ON COLUMN comparison.model_b IS 'Model of side B.';
COMMENT ON COLUMN comparison.precision_a IS 'Its precision.';
COMMENT ON COLUMN comparison.precision_b IS 'Its precision.';
COMMENT ON COLUMN comparison.sessions_a IS 'Sessions of side A that count.';
COMMENT ON COLUMN comparison.sessions_b IS 'Sessions of side B that count.';
COMMENT ON COLUMN comparison.time_a_ms IS 'Time of side A in milliseconds: the mean of the middle half of its sessions.';
COMMENT ON COLUMN comparison.time_b_ms IS 'Time of side B in milliseconds, likewise.';
COMMENT ON COLUMN comparison.ratio IS 'time_b_ms / time_a_ms, or within the states that note names: above 1, B is slower.';
COMMENT ON COLUMN comparison.low IS 'Lower end of the 95 % interval of the ratio; NULL below 5 sessions.';
COMMENT ON COLUMN comparison.high IS 'Upper end of the 95 % interval of the ratio; NULL below 5 sessions.';
COMMENT ON COLUMN comparison.answer IS 'different, same (the interval lies within 1 %) or unknown; inaccurate if the outputs of a side are.';
COMMENT ON COLUMN comparison.more_sessions IS 'Further sessions of each side that would settle an unknown; NULL if 1000 would not.';
COMMENT ON COLUMN comparison.superiority IS 'Probability that a session of B is slower than one of A.';
COMMENT ON COLUMN comparison.changed IS 'What differs between both sides: files, versions; NULL if nothing does.';
COMMENT ON COLUMN comparison.pte_sha256_a IS 'Hash of the .pte file of side A.';
COMMENT ON COLUMN comparison.pte_sha256_b IS 'Hash of the .pte file of side B.';
COMMENT ON COLUMN comparison.runner_sha256_a IS 'Hash of the runner of side A.';
COMMENT ON COLUMN comparison.runner_sha256_b IS 'Hash of the runner of side B.';
COMMENT ON COLUMN comparison.cell_a IS 'The cell of side A.';
COMMENT ON COLUMN comparison.cell_b IS 'The cell of side B.';
COMMENT ON COLUMN comparison.accuracy_a IS 'Accuracy of side A, see cell_accuracy.';
COMMENT ON COLUMN comparison.accuracy_b IS 'Accuracy of side B, see cell_accuracy.';
COMMENT ON COLUMN comparison.note IS 'How sessions were compared within two states of the device, or why they could not be; NULL if it has one.';
