-- For which packed data type of an operator (PF32, PF16, PQS8, QP8) a kernel or an operator computes products, by the
-- data types in its name.
CREATE OR REPLACE MACRO _packed_as(data_types) AS
    CASE
        WHEN regexp_matches(data_types, '(?i)\b(qp8|qai8dxp)\b') THEN 'QP8'
        WHEN regexp_matches(data_types, '(?i)\b(pqs8|qai8p?)\b') THEN 'PQS8'
        WHEN regexp_matches(data_types, '(?i)\bp?f16p?\b') THEN 'PF16'
        WHEN regexp_matches(data_types, '(?i)\bp?f32p?\b') THEN 'PF32'
    END;
