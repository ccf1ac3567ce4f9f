-- What proves each variant of a certification, and how near its outputs are to eager PyTorch.
SELECT
    coverage.model,
    coverage.variant,
    evidence,
    sme_share,
    proven_share,
    proven_sme1_share,
    accuracy,
    snr_db,
    min_snr_db
FROM sme2_coverage AS coverage
JOIN cell_accuracy USING (cell, sweep_id)
WHERE sweep_id = $sweep_id AND coverage.mode = 'timing'
ORDER BY variant DESC, model;
