-- Cells: what was measured alike in each.
SELECT
    cell,
    sweep_id,
    night,
    device,
    _without_times(emulated, transport) AS without_times,
    model,
    precision,
    variant,
    mode,
    threads,
    pair,
    subject AS content,
    subject_pair AS content_pair,
    pte_sha256,
    runner_sha256,
    executorch_version,
    build,
    source_commit
FROM cell
LEFT JOIN (
    SELECT cell, max_by(_commit_name(source_commit, source_author, source_is_dirty), started_at) AS source_commit
    FROM _session
    WHERE list_contains($cells::VARCHAR[], cell)
    GROUP BY cell
) AS commits USING (cell)
WHERE list_contains($cells::VARCHAR[], cell);
