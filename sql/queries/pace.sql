-- How long a session of each kind took on each device in the newest sweeps with one of the models $models: a row per
-- sweep and kind. The median pause before the next session is part of it: one may have waited for hours. Sweeps that
-- were measured later are left out: sessions of other nights are between theirs.
WITH
newest AS (
    SELECT device, sweep_id
    FROM _session
    ANTI JOIN (FROM sweep WHERE measured_later) AS later USING (sweep_id)
    WHERE list_contains($models, model)
    GROUP BY device, sweep_id, night
    QUALIFY row_number() OVER (PARTITION BY device ORDER BY night DESC, sweep_id DESC) <= 5
),
timed AS (
    SELECT
        device,
        sweep_id,
        model,
        precision,
        threads,
        variant,
        mode,
        executions,
        epoch(ended_at - started_at) AS seconds,
        epoch(lead(started_at) OVER (PARTITION BY device, sweep_id ORDER BY started_at) - ended_at) AS pause
    FROM _session
    SEMI JOIN newest USING (device, sweep_id)
    WHERE status IN ('succeeded', 'invalid')
),
pauses AS (
    SELECT device, sweep_id, coalesce(median(greatest(pause, 0)), 0) AS pause
    FROM timed
    GROUP BY device, sweep_id
)
SELECT
    device,
    sweep_id,
    model,
    precision,
    threads,
    variant,
    mode,
    executions,
    avg(seconds) + any_value(pauses.pause) AS seconds
FROM timed
JOIN pauses USING (device, sweep_id)
GROUP BY device, sweep_id, model, precision, threads, variant, mode, executions
ORDER BY device, sweep_id, model, precision, threads, variant, mode, executions;
