-- Reads: _operator_cell, _sme_by_name, _cell, _sme_kernels, _executed_samples, _counted_calls
-- The rows of sme2_operator_coverage with the numbers of their cell.
CREATE OR REPLACE VIEW _sme2_operator AS
WITH
eligible AS (
    SELECT
        cell_id,
        cell,
        sweep_id,
        timed.operator,
        kind,
        category,
        timed.data_type,
        timed.microkernel,
        sme_by_name,
        CASE WHEN sme_by_name <> 'no' THEN _packed_as(timed.data_type) END AS packed_as,
        sum(calls_per_run) AS calls_per_run,
        sum(time_ms) AS time_ms
    FROM _operator_cell AS timed
    JOIN _sme_by_name AS by_name
        ON by_name.operator = timed.operator
            AND by_name.layout IS NOT DISTINCT FROM timed.layout
            AND by_name.data_type IS NOT DISTINCT FROM timed.data_type
            AND by_name.microkernel IS NOT DISTINCT FROM timed.microkernel
    WHERE _sme2_could_serve(category, timed.microkernel)
    GROUP BY ALL
)
SELECT
    _cell.*,
    operator,
    kind,
    category,
    data_type,
    microkernel,
    calls_per_run,
    time_ms,
    sme_by_name,
    -- As in sme2_operator_coverage.
    CASE sme_by_name WHEN 'no' THEN 0 ELSE sme2_share END AS sme2_share,
    -- As in sme2_operator_coverage.
    CASE sme_by_name WHEN 'no' THEN 0 ELSE sme1_share END AS sme1_share,
    -- As in sme2_operator_coverage.
    CASE sme_by_name WHEN 'no' THEN 'name' ELSE coalesce(evidence, 'not proven') END AS evidence,
    -- All samples of profile sessions of the same content; NULL if there are none.
    samples,
    -- Part of samples in SME2 kernels.
    sme2_samples,
    -- Part of samples in SME kernels that are not SME2.
    sme1_samples,
    _counted_calls.* EXCLUDE (subject, sweep_id)
FROM _cell
JOIN eligible USING (cell_id, cell, sweep_id)
LEFT JOIN _sme_kernels USING (subject, sweep_id, packed_as)
LEFT JOIN _executed_samples USING (subject, sweep_id)
LEFT JOIN _counted_calls USING (subject, sweep_id);
