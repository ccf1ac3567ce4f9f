-- Reads: comparison_result, cell_accuracy, _cell_facts, cell
-- Interleaved measurements of two contents on one device: side B compared with side A. Drift and heat of the device
-- affect both, so the ratio is about the two contents.
CREATE OR REPLACE VIEW comparison AS
WITH
-- Accuracy and facts are read once for both sides: each read scans the cells of the farm.
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
    b.variant,
    b.threads,
    -- same_night: a suspected night, with model and runner of the last good night as A; comparison: `etfarm compare` of
    -- two files; bisection: `etfarm bisect`; noise: twice the same content.
    b.purpose,
    -- Model of side A.
    a.model AS model_a,
    -- Model of side B.
    b.model AS model_b,
    -- Its precision.
    a.precision AS precision_a,
    -- Its precision.
    b.precision AS precision_b,
    -- different, same (the interval lies within 1 %) or unknown; inaccurate if the outputs of a side are.
    CASE
        WHEN 'inaccurate' IN (accuracy_a.accuracy, accuracy_b.accuracy) THEN 'inaccurate' ELSE answer
    END AS answer,
    -- time_b_ms / time_a_ms, or within the states that note names: above 1, B is slower.
    ratio,
    -- Lower end of the 95 % interval of the ratio; NULL below 5 sessions.
    low,
    -- Upper end of the 95 % interval of the ratio; NULL below 5 sessions.
    high,
    -- Time of side A in milliseconds: the mean of the middle half of its sessions.
    time_a / 1e6 AS time_a_ms,
    -- Time of side B in milliseconds, in the same way.
    time_b / 1e6 AS time_b_ms,
    sessions_a,
    sessions_b,
    -- What differs between both sides, as a list of {fact, before, after}, see `verdict`; NULL if nothing does.
    _changes(facts_a.facts, facts_b.facts) AS changed,
    -- Accuracy of side A, see cell_accuracy.
    accuracy_a.accuracy AS accuracy_a,
    -- Accuracy of side B, see cell_accuracy.
    accuracy_b.accuracy AS accuracy_b,
    -- Further sessions of each side that would settle an unknown; NULL if 1000 would not.
    more_sessions,
    superiority,
    note,
    b.sweep_id,
    comparison_result.comparison,
    cell_a,
    cell_b,
    -- Hash of the .pte file of side A.
    a.pte_sha256 AS pte_sha256_a,
    -- Hash of the .pte file of side B.
    b.pte_sha256 AS pte_sha256_b,
    -- Hash of the runner of side A.
    a.runner_sha256 AS runner_sha256_a,
    -- Hash of the runner of side B.
    b.runner_sha256 AS runner_sha256_b
FROM comparison_result
JOIN cell AS a ON a.cell = cell_a
JOIN cell AS b ON b.cell = cell_b
LEFT JOIN accuracy AS accuracy_a ON accuracy_a.cell = cell_a AND accuracy_a.sweep_id = a.sweep_id
LEFT JOIN accuracy AS accuracy_b ON accuracy_b.cell = cell_b AND accuracy_b.sweep_id = b.sweep_id
JOIN facts AS facts_a ON facts_a.cell = cell_a
JOIN facts AS facts_b ON facts_b.cell = cell_b;
