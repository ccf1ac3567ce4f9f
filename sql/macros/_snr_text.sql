-- An SNR below its limit, in words; NULL if it is not.
CREATE OR REPLACE MACRO _snr_text(snr_db, min_snr_db, reference) AS
    CASE
        WHEN snr_db < min_snr_db
        THEN format('SNR {:.1f} dB against {}, limit {:.0f} dB', snr_db::DOUBLE, reference, min_snr_db::DOUBLE)
    END;
