-- Each output is compared with eager PyTorch in the recipe's precision and in fp32, and judged by a limit. An older farm
-- compared int8 with the fp32 model, and everything else with eager PyTorch in the same precision.
ALTER TABLE accuracy ADD COLUMN reference VARCHAR;
ALTER TABLE accuracy ADD COLUMN snr_db DOUBLE;
ALTER TABLE accuracy ADD COLUMN cosine DOUBLE;
ALTER TABLE accuracy ADD COLUMN top1_agreement DOUBLE;
ALTER TABLE accuracy ADD COLUMN least_snr_db DOUBLE;
ALTER TABLE accuracy ADD COLUMN is_inaccurate BOOLEAN;

UPDATE accuracy
SET reference = CASE
    WHEN session_key IN (
        SELECT session_key
        FROM session
        JOIN model USING (model_id)
        WHERE precision IN ('int8_static', 'int8_dynamic')
    ) THEN 'fp32'
    ELSE 'eager'
END;
