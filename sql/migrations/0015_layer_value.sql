-- How far the values inside a model are from eager PyTorch, by session in mode numerics and layer.
CREATE TABLE layer_value (
    session_key INTEGER NOT NULL,
    layer INTEGER NOT NULL,         -- in the order of the model, from 0
    module VARCHAR,
    operator VARCHAR NOT NULL,
    elements BIGINT NOT NULL,
    max_abs_error DOUBLE,
    snr_db DOUBLE,
    nonfinite_mismatches BIGINT NOT NULL,
    values_sha256 VARCHAR NOT NULL,
    sample DOUBLE[] NOT NULL        -- evenly spaced values of the device
);
