-- The largest error of each output over all sessions that succeeded, emulated devices included.
WITH
worst AS (
    SELECT
        model,
        device,
        emulated IS TRUE AS emulated,
        precision,
        variant,
        output,
        max(max_abs_error) AS max_abs_error,
        max(max_rel_error) AS max_rel_error,
        max(nonfinite_mismatches) AS nonfinite_mismatches,
        count(DISTINCT session_id) AS sessions
    FROM session_accuracy
    WHERE sweep_id = $sweep_id
    GROUP BY ALL
)
SELECT *
FROM worst
ORDER BY model, emulated, device, precision <> 'fp32', precision, variant, output;
