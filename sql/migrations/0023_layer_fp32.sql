-- The layer of the device beside the same layer of the fp32 model; NULL where there is none.
ALTER TABLE layer_value ADD COLUMN snr_fp32_db DOUBLE;
ALTER TABLE layer_value ADD COLUMN lost_fp32 BIGINT;
