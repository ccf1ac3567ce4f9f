-- The worst figures of each output against each reference over the sessions of one content, all modes but numerics
-- together, emulated devices included.
WITH
worst AS (
    SELECT
        named.* EXCLUDE (cell, sweep_id, differs, place),
        subject AS cell,
        max(differs) AS differs,
        output,
        reference,
        max(max_abs_error) AS max_abs_error,
        max(max_rel_error) AS max_rel_error,
        max(nonfinite_mismatches) AS nonfinite_mismatches,
        min(snr_db) AS snr_db,
        min(cosine) AS cosine,
        min(top1_agreement) AS top1_agreement,
        min(first_difference) AS first_difference,
        max(margin) AS margin,
        max(min_snr_db) AS min_snr_db,
        bool_or(is_inaccurate) AS is_inaccurate,
        any_value(samples) AS samples,
        any_value(samples_below) AS below,
        any_value(worst_sample) AS worst,
        any_value(median_snr_db) AS median_snr_db,
        any_value(score) AS score,
        any_value(reference_score) AS reference_score,
        any_value(min_score) AS min_score,
        max(min_top1) AS min_top1,
        any_value(calibrating_samples) AS calibrating,
        any_value(samples_machine) AS machine,
        count(DISTINCT session_id) AS sessions
    FROM session_accuracy
    JOIN cell USING (cell, sweep_id)
    JOIN _named_cell AS named USING (cell, sweep_id)
    WHERE sweep_id = $sweep_id AND purpose IS NULL AND cell.mode != 'numerics'
    GROUP BY ALL
)
FROM worst
ORDER BY
    model, without_times IS NOT NULL, device, threads, precision <> 'fp32', precision, variant, differs, cell, output,
    reference;
