-- What each device ran in the nights of the sweep $name from $first to $last: its newest facts of the night, and its
-- runners, the newest first; how long a session took with the pause after it; and the cells of the night that belong to
-- series or to the sweep. What was measured later is left out.
WITH
measured AS (
    SELECT
        _session.night,
        _session.device,
        runner_sha256,
        max(_session.started_at) AS started_at,
        max_by(
            {
                'serial': facts.serial,
                'build': facts.build,
                'os_version': facts.os_version,
                'device_model': facts.device_model,
                'soc': facts.soc,
                'launcher': facts.launcher,
                'sme': facts.sme,
                'sme2': facts.sme2
            },
            _session.started_at
        ) AS facts
    FROM _session
    JOIN device AS facts USING (device_id)
    JOIN sweep USING (sweep_id)
    WHERE sweep.name = $name
        AND sweep.night BETWEEN $first::DATE AND $last::DATE
        AND measured_later IS NOT TRUE
        AND purpose IS NULL
        AND status = 'succeeded'
    GROUP BY ALL
),
paced AS (
    SELECT night, device, median(seconds) AS session_s
    FROM (
        SELECT
            _session.night,
            device,
            epoch(lead(started_at) OVER (PARTITION BY sweep_id, device ORDER BY started_at) - started_at) AS seconds
        FROM _session
        JOIN sweep USING (sweep_id)
        WHERE sweep.name = $name AND sweep.night BETWEEN $first::DATE AND $last::DATE AND measured_later IS NOT TRUE
    )
    GROUP BY night, device
),
cells AS (
    SELECT
        _session.night,
        device,
        list(DISTINCT row(model, precision, variant, mode, threads)) AS cells
    FROM _session
    JOIN sweep USING (sweep_id)
    WHERE _session.night BETWEEN $first::DATE AND $last::DATE
        AND measured_later IS NOT TRUE
        AND purpose IS NULL
        AND (series_id IS NOT NULL OR sweep.name = $name)
    GROUP BY ALL
)
SELECT
    night,
    device,
    max_by(facts, started_at) AS facts,
    list(runner_sha256 ORDER BY started_at DESC) AS runners,
    any_value(session_s) AS session_s,
    any_value(cells) AS cells
FROM measured
JOIN cells USING (night, device)
JOIN paced USING (night, device)
GROUP BY night, device
ORDER BY night, device;
