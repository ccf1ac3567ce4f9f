-- The commit of the newest night that measured each of the .pte files $hashes.
SELECT
    model.pte_sha256,
    arg_max(source_commit, (_session.night, started_at)) AS source_commit,
    arg_max(source_is_dirty, (_session.night, started_at)) AS source_is_dirty
FROM _session
JOIN model USING (model_id)
WHERE model.pte_sha256 IN $hashes AND purpose IS NULL AND source_commit IS NOT NULL
GROUP BY model.pte_sha256;
