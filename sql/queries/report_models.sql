-- The exported models of the sweep; a failed export has no hash.
SELECT
    model,
    precision,
    seed,
    export_key,
    pte_sha256,
    pte_bytes,
    versions ->> 'executorch' AS executorch_version,
    versions ->> 'torch' AS torch_version,
    versions ->> 'transformers' AS transformers_version,
    versions ->> 'python' AS python_version
FROM model_overview
WHERE sweep_id = $sweep_id AND pte_sha256 IS NOT NULL
ORDER BY model, precision <> 'fp32', precision, pte_sha256;
