-- How far the outputs of a cell are from their references, for the view cell_accuracy: a farm has millions of sessions,
-- most of which have no reference.
CREATE TABLE cell_output (
    cell_id INTEGER NOT NULL,
    sessions BIGINT NOT NULL,
    compared_sessions BIGINT NOT NULL,
    judged_sessions BIGINT NOT NULL,
    inaccurate_sessions BIGINT NOT NULL,
    max_abs_error DOUBLE,
    snr_db DOUBLE,
    least_snr_db DOUBLE,
    snr_fp32_db DOUBLE,
    least_snr_fp32_db DOUBLE,
    cosine DOUBLE,
    top1_agreement DOUBLE,
    snr_host_db DOUBLE,
    least_snr_host_db DOUBLE,
    least_top1 DOUBLE,
    judged_top1 DOUBLE,
    first_difference BIGINT
);
