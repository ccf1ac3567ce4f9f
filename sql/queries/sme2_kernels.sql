-- The twelve heaviest kernels of each pair: counted ones with their calls per run, executed ones (sampled), and those
-- that XNNPACK only selected. A pair that is timed as well has the id that its times have.
WITH
timed AS (
    SELECT subject_pair, min(pair) AS timed_pair
    FROM _cell
    WHERE sweep_id = $sweep_id AND variant IN ('sme2_on', 'sme1', 'sme2_off')
    GROUP BY subject_pair
),
side AS (
    SELECT
        named.* EXCLUDE (cell, sweep_id, variant, differs, place),
        coalesce(timed_pair, subject_pair) AS pair,
        max(differs) AS differs,
        evidence,
        kernel,
        isa_family,
        coalesce(sum(amount) FILTER (named.variant = 'sme2_off'), 0) AS weight_off,
        coalesce(sum(amount) FILTER (named.variant = 'sme1'), 0) AS weight_sme1,
        coalesce(sum(amount) FILTER (named.variant = 'sme2_on'), 0) AS weight_on
    FROM (SELECT *, coalesce(round(calls_per_run)::BIGINT, weight) AS amount FROM kernel_use)
    JOIN cell USING (cell, sweep_id)
    JOIN _named_cell AS named USING (cell, sweep_id)
    LEFT JOIN timed USING (subject_pair)
    WHERE sweep_id = $sweep_id
    GROUP BY ALL
),
ranked AS (
    SELECT
        *,
        row_number() OVER (PARTITION BY pair, evidence ORDER BY weight_on DESC, weight_off DESC, kernel) AS place_on,
        row_number() OVER (PARTITION BY pair, evidence ORDER BY weight_off DESC, weight_on DESC, kernel) AS place_off,
        row_number() OVER (PARTITION BY pair, evidence ORDER BY weight_sme1 DESC, weight_on DESC, kernel) AS place_sme1
    FROM side
)
SELECT * EXCLUDE (place_on, place_off, place_sme1)
FROM ranked
WHERE place_on <= 12 OR place_off <= 12 OR (weight_sme1 > 0 AND place_sme1 <= 12)
ORDER BY
    model,
    without_times IS NOT NULL,
    device,
    threads,
    precision <> 'fp32',
    precision,
    differs,
    pair,
    evidence,
    weight_on DESC,
    weight_off DESC, kernel;
