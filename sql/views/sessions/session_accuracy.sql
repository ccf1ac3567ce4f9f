CREATE OR REPLACE VIEW session_accuracy AS
SELECT
    session_id,
    sweep_id,
    night,
    device,
    emulated,
    model,
    precision,
    variant,
    mode,
    threads,
    output,
    max_abs_error,
    max_rel_error,
    nonfinite_mismatches,
    runner_source,
    cell,
    pte_sha256,
    runner_sha256,
    serial,
    build
FROM accuracy
JOIN _session USING (session_key)
WHERE status = 'succeeded';

COMMENT ON VIEW session_accuracy IS 'Every output of every session that succeeded, compared with the eager reference.';
COMMENT ON COLUMN session_accuracy.output IS 'Number of the output, from 0.';
COMMENT ON COLUMN session_accuracy.max_abs_error IS 'Largest absolute difference from the reference; NULL if no value is finite in both.';
COMMENT ON COLUMN session_accuracy.max_rel_error IS 'Largest difference relative to the reference; NULL if no value is finite in both.';
COMMENT ON COLUMN session_accuracy.nonfinite_mismatches IS 'Values that are NaN or infinite on one side and not the same on the other.';
