-- The planned memory of the exported models of a sweep, with the largest buffer of each.
SELECT
    model,
    precision,
    planned_bytes,
    any_value(overview.live_bytes) AS live_bytes,
    any_value(needed_bytes) AS needed_bytes,
    any_value(constant_bytes) AS constant_bytes,
    any_value(delegate_bytes) AS delegate_bytes,
    max(bytes) AS bytes,
    arg_max(producer, bytes) AS producer,
    arg_max(last_user, bytes) AS last_user,
    arg_max(life_share, bytes) AS life_share
FROM model_overview AS overview
LEFT JOIN live_buffer USING (sweep_id, model, precision, pte_sha256, planned_bytes)
WHERE sweep_id = $sweep_id AND planned_bytes IS NOT NULL
GROUP BY model, precision, pte_sha256, planned_bytes
ORDER BY model, precision <> 'fp32', precision, pte_sha256;
