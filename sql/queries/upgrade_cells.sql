-- What an upgrade may change, for each name of a cell in timing of $sweep_id: how its sessions ended, codes and reasons
-- of those that did not succeed, figures of those that did, and what its export delegated. Of several contents of one
-- name, the newest counts: after the model or the farm changed, or an export failed, within a day.
WITH
ended AS (
    SELECT *
    FROM _session
    WHERE sweep_id = $sweep_id
        AND mode = 'timing'
        AND purpose IS NULL
        AND reason_code IS DISTINCT FROM 'first_session'
),
newest AS (
    SELECT
        model,
        device,
        precision,
        variant,
        threads,
        max_by({ 'pte': pte_sha256, 'runner': runner_sha256 }, (started_at, session_id)) AS content
    FROM ended
    GROUP BY model, device, precision, variant, threads
),
placed AS (
    SELECT
        model_id,
        sum(count) FILTER (placement = 'delegated') AS delegated,
        sum(count) FILTER (placement = 'portable') AS portable
    FROM model_operator
    GROUP BY model_id
)
SELECT
    model,
    device,
    precision,
    variant,
    threads,
    any_value(emulated) IS TRUE AS emulated,
    list(DISTINCT cell ORDER BY cell) FILTER (status = 'succeeded') AS cells,
    count(*) FILTER (status = 'succeeded') AS succeeded,
    list([reason_code, reason] ORDER BY started_at, session_id) FILTER (status <> 'succeeded') AS failures,
    coalesce(list(load_ns ORDER BY session_id) FILTER (status = 'succeeded' AND load_ns > 0), []) AS loads_ns,
    coalesce(
        list(model_peak_memory_bytes ORDER BY session_id) FILTER (
            status = 'succeeded' AND model_peak_memory_bytes > 0
        ),
        []
    ) AS peaks_bytes,
    any_value(pte_bytes) AS pte_bytes,
    any_value(delegated)::BIGINT AS delegated,
    any_value(portable)::BIGINT AS portable,
    coalesce(any_value(accuracy), 'not compared') AS accuracy
FROM ended
JOIN newest USING (model, device, precision, variant, threads)
JOIN (SELECT model_id, pte_bytes FROM model) USING (model_id)
LEFT JOIN placed USING (model_id)
LEFT JOIN (SELECT cell, sweep_id, accuracy FROM cell_accuracy) USING (cell, sweep_id)
WHERE { 'pte': pte_sha256, 'runner': runner_sha256 } = content
    AND (
        reason_code IS NOT DISTINCT FROM 'export_failed'
        OR session_id NOT IN (SELECT session_id FROM failed_session WHERE superseded)
    )
GROUP BY model, device, precision, variant, threads
ORDER BY model, device, precision, variant, threads;
