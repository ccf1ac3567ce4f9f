-- The twelve heaviest kernels of each cell: executed ones (sampled) apart from those that XNNPACK only selected.
WITH
side AS (
    SELECT
        model,
        device,
        emulated IS TRUE AS emulated,
        precision,
        threads,
        runner_source,
        evidence,
        kernel,
        isa_family,
        coalesce(sum(weight) FILTER (variant = 'sme2_off'), 0) AS weight_off,
        coalesce(sum(weight) FILTER (variant = 'sme2_on'), 0) AS weight_on
    FROM kernel_use
    WHERE sweep_id = $sweep_id
    GROUP BY ALL
),
ranked AS (
    SELECT
        *,
        row_number() OVER (
            PARTITION BY model, device, precision, threads, runner_source, evidence
            ORDER BY weight_on DESC, weight_off DESC, kernel
        ) AS place_on,
        row_number() OVER (
            PARTITION BY model, device, precision, threads, runner_source, evidence
            ORDER BY weight_off DESC, weight_on DESC, kernel
        ) AS place_off
    FROM side
)
SELECT * EXCLUDE (place_on, place_off)
FROM ranked
WHERE place_on <= 12 OR place_off <= 12
ORDER BY
    model, emulated, device, threads, precision <> 'fp32', precision, runner_source, evidence, weight_on DESC,
    weight_off DESC, kernel;
