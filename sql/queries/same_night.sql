-- The suspected nights of a sweep's series whose model or runner is not that of the last good night, the largest change
-- of each device first, with what ran on both nights.
SELECT
    verdict.device,
    verdict.model,
    verdict.precision,
    verdict.variant,
    verdict.threads,
    now.executions,
    now.warmup_executions,
    verdict.ratio,
    verdict.baseline_to,
    export_key AS export_key_a,
    before.pte_sha256 AS pte_sha256_a,
    before.runner_sha256 AS runner_sha256_a,
    now.pte_sha256 AS pte_sha256_b,
    now.runner_sha256 AS runner_sha256_b,
    verdict.sessions
FROM verdict
JOIN cell AS now ON now.cell = verdict.cell
JOIN cell AS before ON before.cell = verdict.baseline_cell
LEFT JOIN _cell_export ON _cell_export.cell = verdict.baseline_cell
WHERE verdict.sweep_id = $sweep_id
    AND verdict IN ('suspected', 'suspected improvement')
    AND (before.pte_sha256, before.inputs_sha256, before.runner_sha256)
    IS DISTINCT FROM (now.pte_sha256, now.inputs_sha256, now.runner_sha256)
ORDER BY
    verdict.device, abs(ln(verdict.ratio)) DESC, verdict.model, verdict.precision, verdict.variant, verdict.threads;
